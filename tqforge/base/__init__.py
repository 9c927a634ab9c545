"""Pinned llama.cpp versions and models: fetch, verify and import them."""
