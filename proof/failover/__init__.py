"""Failovers: under Patroni, with commits whose wait was cancelled, to a standby that is behind."""
