"""Pure decisions: no clock, no I/O, no randomness. Time and chance are passed in."""
