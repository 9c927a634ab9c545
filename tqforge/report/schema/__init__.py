"""The report file format and its JSON schema."""
