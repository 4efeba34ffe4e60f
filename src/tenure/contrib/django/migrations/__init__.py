"""Tenure's migrations as Django migrations, one for each, with the same number and name."""
