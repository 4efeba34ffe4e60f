"""Many at once: workers with many jobs, workers without any, leases that end together."""
