"""Maintain, build and verify a llama.cpp patch series that adds the TurboQuant tq3_0 KV-cache type."""

__version__ = "0.1.0"
