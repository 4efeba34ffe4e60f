"""Crash tests of this queue and others: a worker is killed or stopped."""
