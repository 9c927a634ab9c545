"""The pull-request pack: facts, logs, commands and patches for a person who writes the words."""
