"""The code that runs inside the llama.cpp child process."""
