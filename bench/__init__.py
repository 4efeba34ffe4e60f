"""Measurements: what the store costs, against the bare engine in the same run."""
