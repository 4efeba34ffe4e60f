"""What is done to a run: each nemesis knows one way to break something, and how to mend it."""
