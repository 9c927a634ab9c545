"""Render a report as HTML and for the terminal."""
