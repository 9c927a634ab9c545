"""The verification stages, one module or folder each."""
