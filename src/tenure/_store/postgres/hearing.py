"""Whether what one connection notifies is heard by another. For the doctor alone."""

from uuid import uuid4

import psycopg
from psycopg import sql

from tenure._store.postgres.connecting import connect
from tenure.errors import Unreachable

_PATIENCE = 3.0


def hears(url: str) -> bool | None:
    """Try it over two connections; None through a pooler, where a LISTEN would be left behind in
    a session that others are handed."""
    channel = f"tenure_doctor_{uuid4().hex}"
    with connect(url, name="tenure doctor") as ear, connect(url, name="tenure doctor") as mouth:
        if ear.pooled:
            return None
        try:
            ear.execute(sql.SQL("LISTEN {}").format(sql.Identifier(channel)))
            mouth.execute("SELECT pg_notify(%s, '')", [channel])
            return any(True for _ in ear.notifies(timeout=_PATIENCE, stop_after=1))
        except psycopg.Error as error:
            raise Unreachable(f"the connection broke while listening: {error}") from error
