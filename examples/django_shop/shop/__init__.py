"""A shop that charges each order exactly once."""
