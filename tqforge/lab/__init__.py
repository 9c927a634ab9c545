"""Codecs tried in the running graph of a real model, without compiling them."""
