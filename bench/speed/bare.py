"""The bare engine by the protocol of contenders: `python -m bench.speed.bare VERB …`.

bench/bare.sql on one connection in sequence, no Python per job but to hand ids and tokens from
what was claimed to what settles: no row is decoded. BENCH_BATCH is how many are claimed at once.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
from psycopg import pq
from psycopg_pool import ConnectionPool

from bench.speed.counting import Count
from tenure._store.postgres.connections import connect, own

if TYPE_CHECKING:
    from collections.abc import Sequence

    from psycopg.pq.abc import PGconn, PGresult

QUEUE = b"bench"
WORKER = b"00000000-0000-0000-0000-000000000001"
URL = os.environ["BENCH_URL"]
BATCH = int(os.environ.get("BENCH_BATCH", "100"))
INSERT = """
WITH made AS (
    INSERT INTO bare.job (queue, task, args, priority, created_at, run_at)
    VALUES ('bench', 'noop', '{}', 5, clock_timestamp(), clock_timestamp())
    RETURNING id
)
SELECT id, pg_notify('bare', '') FROM made
"""
COPY = "COPY bare.job (queue, task, args, priority, created_at, run_at) FROM STDIN"
_IDLE = 0.05


def _texts() -> dict[str, bytes]:
    parts = Path(__file__).parent.with_name("bare.sql").read_text().split("-- name: ")[1:]
    return {p.split("\n", 1)[0]: p.split("\n", 1)[1].encode() for p in parts}


def _install() -> None:
    with connect(URL) as connection:
        connection.execute(_texts()["schema"])


def _work() -> None:
    texts, count = _texts(), Count()
    with connect(URL) as connection:
        server = connection.pgconn
        for name in ("claim", "settle"):
            _done(server.prepare(name.encode(), texts[name]))
        while True:
            claimed = _run(server, b"claim", [QUEUE, str(BATCH).encode(), WORKER])
            jobs = claimed.ntuples
            if not jobs:
                time.sleep(_IDLE)
                continue
            ids, tokens = (_column(claimed, place, jobs) for place in (0, 1))
            _run(server, b"settle", [ids, tokens, b"{" + b",".join([WORKER] * jobs) + b"}"])
            count.add(jobs)


def _run(server: PGconn, name: bytes, arguments: Sequence[bytes]) -> PGresult:
    return _done(server.exec_prepared(name, arguments))


def _done(result: PGresult) -> PGresult:
    if result.status not in (pq.ExecStatus.COMMAND_OK, pq.ExecStatus.TUPLES_OK):
        raise psycopg.OperationalError(result.error_message.decode())
    return result


def _column(result: PGresult, place: int, jobs: int) -> bytes:
    values = (result.get_value(row, place) or b"" for row in range(jobs))
    return b"{" + b",".join(values) + b"}"


def _enqueue(number: int) -> float:
    """One by one through a pool."""
    options: dict[str, Any] = {"autocommit": True, "prepare_threshold": 0}
    with ConnectionPool(own(URL), min_size=1, max_size=10, kwargs=options) as pool:
        pool.wait(10)
        began = time.perf_counter()
        for _ in range(number):
            with pool.connection() as connection:
                connection.execute(INSERT).fetchone()
        return time.perf_counter() - began


def _enqueue_open(number: int) -> float:
    """One by one on an open connection."""
    with connect(URL) as connection:
        connection.prepare_threshold = 0
        began = time.perf_counter()
        for _ in range(number):
            connection.execute(INSERT).fetchone()
        return time.perf_counter() - began


def _fill(number: int) -> float:
    """COPY, as psycopg writes rows."""
    with connect(URL, statement_timeout="60s") as connection, connection.cursor() as cursor:
        began = time.perf_counter()
        with cursor.copy(COPY) as copy:
            for _ in range(number):
                copy.write_row(("bench", "noop", "{}", 5, "now", "now"))
        return time.perf_counter() - began


def main(verb: str, *args: str) -> None:
    enqueues = {"fill": _fill, "enqueue": _enqueue, "enqueue-open": _enqueue_open}
    answer: dict[str, Any] = {}
    if verb == "work":
        _work()
    elif verb == "install":
        _install()
    elif verb == "about":
        answer = {
            "name": "bare",
            "version": "bench/bare.sql",
            "mode": "one connection, in sequence",
        }
        answer["keeps"] = "archive and attempt rows"
    else:
        answer = {"seconds": enqueues[verb](int(args[0]))}
    print(json.dumps(answer))


if __name__ == "__main__":
    main(*sys.argv[1:])
