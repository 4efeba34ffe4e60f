"""`python -m tenure`: the same as the `tenure` command."""

from tenure.cli import main

main()
