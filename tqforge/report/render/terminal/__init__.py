"""Render a report as terminal tables."""
