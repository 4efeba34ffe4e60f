"""Background services that any process may run, one per file.

They depend only on the store's interface, never on a particular database.
"""
