"""One small program for each queue; each runs in the environment of its queue."""
