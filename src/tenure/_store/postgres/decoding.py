"""Read a result value by value, so that a value the driver can't read doesn't affect the others.

The driver reads a whole result at once. That is fast, but it fails at the first value that Python
can't represent. Only then is the result read again here.
"""

from datetime import UTC, date
from typing import Any

import psycopg
from psycopg import pq

from tenure._rules.readable import UnreadableJson, UnreadableTime
from tenure._store.steps import Rows
from tenure.config import LONGEST_WAIT

# The driver's errors for an unrepresentable time or interval, for JSON that is nested too deeply,
# and for a number that is too long.
UNDECODABLE = (psycopg.DataError, ValueError, OverflowError, RecursionError)
_TYPES = psycopg.adapters.types
_JSON = {_TYPES[name].oid for name in ("json", "jsonb")}
_TIMES = {_TYPES[name].oid for name in ("timestamp", "timestamptz")}
_DATE = _TYPES["date"].oid
_INTERVAL = _TYPES["interval"].oid
# One day inside the first and last years, so that the times exist in every time zone.
_FIRST = UnreadableTime(1, 1, 2, tzinfo=UTC)
_LAST = UnreadableTime(9999, 12, 30, tzinfo=UTC)


def read(cursor: psycopg.RawCursor[Any] | psycopg.AsyncRawCursor[Any], *, as_tuples: bool) -> Rows:
    """Return the rows of a cursor whose result can't be read as a whole."""
    result = cursor.pgresult
    if result is None:
        return []
    oids = [result.ftype(place) for place in range(result.nfields)]
    loads = [_load(cursor, oid) for oid in oids]
    names = [(result.fname(place) or b"").decode() for place in range(result.nfields)]
    rows: list[Any] = []
    for nth in range(result.ntuples):
        values = [
            None if (raw := result.get_value(nth, place)) is None else _value(load, oid, raw)
            for place, (load, oid) in enumerate(zip(loads, oids, strict=True))
        ]
        rows.append(tuple(values) if as_tuples else dict(zip(names, values, strict=True)))
    return rows


def _load(cursor: psycopg.RawCursor[Any] | psycopg.AsyncRawCursor[Any], oid: int) -> Any:
    kind = cursor.adapters.get_loader(oid, pq.Format.TEXT) or cursor.adapters.get_loader(
        0, pq.Format.TEXT
    )
    if kind is None:
        raise AssertionError(f"no loader for type {oid}")
    return kind(oid, cursor).load


def _value(load: Any, oid: int, raw: bytes) -> Any:
    try:
        return load(raw)
    except UNDECODABLE as error:
        if oid in _JSON:
            why = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
            return UnreadableJson(why.partition(";")[0])
        before = raw.startswith(b"-") or raw.endswith(b"BC")
        if oid in _TIMES:
            return _FIRST if before else _LAST
        if oid == _DATE:
            return date.min if before else date.max
        if oid == _INTERVAL:
            return -LONGEST_WAIT if before else LONGEST_WAIT
        raise
