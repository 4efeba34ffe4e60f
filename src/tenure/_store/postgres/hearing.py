"""Whether what one connection notifies is heard by another. For the doctor alone."""

from datetime import timedelta
from time import monotonic
from uuid import uuid4

import psycopg
from psycopg import sql

from tenure._model.vitals import Hearing
from tenure._store.postgres.connecting import connect
from tenure.errors import Unreachable

_PATIENCE = 3.0


def hears(url: str) -> Hearing:
    """Try it over two connections; not through a pooler, where a LISTEN would be left behind in a
    session that others are handed."""
    channel = f"tenure_doctor_{uuid4().hex}"
    with connect(url, name="tenure doctor") as ear, connect(url, name="tenure doctor") as mouth:
        if ear.pooled:
            return Hearing(pooled=True)
        try:
            ear.execute(sql.SQL("LISTEN {}").format(sql.Identifier(channel)))
            notified_at = monotonic()
            mouth.execute("SELECT pg_notify(%s, '')", [channel])
            if any(True for _ in ear.notifies(timeout=_PATIENCE, stop_after=1)):
                return Hearing(lag=timedelta(seconds=monotonic() - notified_at))
            return Hearing()
        except psycopg.Error as error:
            raise Unreachable(f"the connection broke while listening: {error}") from error
