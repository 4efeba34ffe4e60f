"""A database with the roles that `tenure db roles` prints, and a connection as each of them."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

import psycopg

from support.store import install
from tenure._store.postgres.connections import connect
from tenure._store.postgres.roles import ROLES
from tenure._store.postgres.sessions import Session
from tenure.admin import roles

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.databases import Databases
    from tenure._store.steps import Op

T = TypeVar("T")
# The columns of a job that a producer may not write, each with some value.
NOT_A_PRODUCERS = {
    "id": "7",
    "token": "1",
    "state": "'running'",
    "attempt": "32767",
    "losses": "1",
    "worker_losses": "1",
    "deaths": "1",
    "suspect": "true",
    "returned": "true",
    "limited": "true",
    "awaited": "true",
    "cancel_requested": "true",
    "claimed_by": "gen_random_uuid()",
    "claimed_at": "now()",
    "renewed_at": "now()",
    "lease_expires_at": "now() + interval '1 year'",
    "renewals": "1",
    "items": "1",
    "cursor": "'{}'",
    "progress": "'{}'",
}


class Parties:
    """One database, and a connection for each of the roles."""

    def __init__(self, url: str) -> None:
        self.url = url

    def as_role(self, role: str) -> str:
        """The database's URL for this role."""
        scheme, _, rest = self.url.partition("://")
        return f"{scheme}://tenure_{role}@{rest.rpartition('@')[2]}"

    def run(self, role: str, op: Op[T]) -> T:
        """Perform an operation as this role, on a connection as the store makes its own."""
        with connect(self.as_role(role)) as connection:
            return Session(connection).run(op)

    @contextmanager
    def connected(self, role: str) -> Iterator[psycopg.Connection]:
        """A plain connection as this role."""
        with psycopg.connect(self.as_role(role), autocommit=True) as connection:
            yield connection

    def execute(self, text: str) -> None:
        """Run statements as the superuser."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(text.encode())


@contextmanager
def database_with_roles(databases: Databases) -> Iterator[Parties]:
    """A new database with the roles. Both are dropped at the end."""
    parties = Parties(databases.create(databases.template("tenure", install)))
    parties.execute(roles("tenure"))
    yield parties
    for role in ROLES:
        parties.execute(f"DROP OWNED BY tenure_{role} CASCADE")
        parties.execute(f"DROP ROLE tenure_{role}")
    databases.drop(parties.url)
