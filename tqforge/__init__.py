"""tqforge carries the tq3_0 KV-cache type on a pinned llama.cpp, builds it and proves what it does."""

__version__ = "0.1.0"
