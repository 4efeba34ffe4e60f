"""Middleware around enqueue and run, and listeners for events."""
