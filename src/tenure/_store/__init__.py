"""The store: `port` is its interface, with one package per database."""
