"""A private PostgreSQL server for tests and `tenure dev`, using installed binaries.

The server opens no port. Its socket is in a directory that only its user can enter. This package
imports only the standard library and `errors`.
"""

from tenure._local_postgres.server import PrivatePostgres, find_binaries

__all__ = ["PrivatePostgres", "find_binaries"]
