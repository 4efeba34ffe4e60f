"""What a worker does, one service in one file. Knows the port, never a database."""
