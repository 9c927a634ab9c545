"""Evaluate a backend's supports_op from its source code."""
