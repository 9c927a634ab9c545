"""Configure, compile, load-check and package the patched llama.cpp."""
