"""A Django migration for each of Tenure's own, with the same number and name."""
