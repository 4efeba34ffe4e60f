"""Innocence (I11) and liveness of the watch (I12), under crashes, outages and hostile handlers."""
