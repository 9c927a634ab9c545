"""The code that runs inside the child process of the lab."""
