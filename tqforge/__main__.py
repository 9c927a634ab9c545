"""`python -m tqforge`."""

from tqforge.cli import main

main()
