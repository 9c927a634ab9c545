"""Prefill and decode rates at several cache depths."""
