"""The patch series: files, trailers, lock, apply, resolve and export."""
