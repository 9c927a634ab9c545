"""One module per verb, with a function that returns the exit code. Commands do not import each other."""
