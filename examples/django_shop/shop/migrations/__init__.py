"""The shop's own migrations."""
