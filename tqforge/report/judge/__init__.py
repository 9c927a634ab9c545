"""Turn observations into levels, findings and recommendations."""
