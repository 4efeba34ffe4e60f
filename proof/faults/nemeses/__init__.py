"""Nemeses: each knows one way to break something, and how to fix it."""
