"""One verb, one file, one function that returns the exit code."""
