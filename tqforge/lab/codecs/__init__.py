"""Composable NumPy codecs and their registry."""
