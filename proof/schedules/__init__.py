"""Schedules under proof: the rules of time against an oracle that knows nothing of them."""
