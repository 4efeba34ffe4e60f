"""Tenure's migrations as Django's: one for each, by the same number and name."""
