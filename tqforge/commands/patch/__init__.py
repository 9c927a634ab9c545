"""The patch life cycle: one verb, one file."""
