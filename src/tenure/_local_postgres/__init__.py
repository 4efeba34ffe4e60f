"""A private PostgreSQL server from installed binaries, for tests and for `tenure dev`.

It opens no port: its socket is in a directory that only its user can enter. Standard library and
errors only; what is in its databases is other rooms' business.
"""

from tenure._local_postgres.server import PrivatePostgres, find_binaries

__all__ = ["PrivatePostgres", "find_binaries"]
