"""Check whether a series still applies to other llama.cpp versions."""
