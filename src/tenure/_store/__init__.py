"""The store: where jobs are kept. `port` is the seam, one package per database behind it."""
