"""Requests to the llama.cpp child process and its replies. Both sides use these types, so mypy sees every call.

A request names the type of its reply: `Request[Opened]` is answered with `Opened`. Arrays longer than a prompt travel
through `.npy` files whose paths stand in the request.
"""
