"""Pills among many jobs: found out after three losses each, and no innocent with them."""
