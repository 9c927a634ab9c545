"""Configure, compile, smoke-test and package the patched llama.cpp."""
