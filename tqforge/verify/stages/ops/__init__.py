"""Upstream's test-backend-ops on every backend."""
