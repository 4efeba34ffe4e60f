"""Real processes, real signals, a short lease: nothing is lost, nothing happens twice."""
