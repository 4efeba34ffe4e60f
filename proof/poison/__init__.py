"""Pills among many jobs: found out after three deaths of their own process; no innocent fails."""
