"""The pull-request pack: facts, logs, commands and patches."""
