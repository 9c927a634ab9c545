"""Observe and replace tensors through ggml's evaluation callback."""
