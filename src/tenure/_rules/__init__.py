"""Pure decisions: no clock, no I/O, no randomness. Time and random numbers are passed in."""
