"""Loops that any process may run, one service in one file. Knows the port, never a database."""
