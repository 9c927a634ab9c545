"""The recorded run: its schema, and the rules that turn observations into figures."""
