"""Needle-in-a-haystack retrieval."""
