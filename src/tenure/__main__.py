"""`python -m tenure`: the same as the command `tenure`."""

from tenure.cli import main

main()
