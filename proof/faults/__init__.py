"""Everything at once: workers, clients and a server that are broken on purpose, and a checker."""
