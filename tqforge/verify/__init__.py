"""Run the verification stages and record their observations."""
