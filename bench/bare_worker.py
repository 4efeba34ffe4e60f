"""The bare INSERT + LISTEN loop: `python -m bench.bare_worker`. What waking and claiming costs
without anything around it."""

from __future__ import annotations

import os
import time

import psycopg

from bench.jobs import STAMP
from bench.subjects import Bare
from tenure._store.postgres.connections import connect


def main() -> None:
    url = os.environ["TENURE_DATABASE_URL"]
    stamps = os.open(os.environ["BENCH_STAMPS"], os.O_WRONLY | os.O_APPEND)
    listener = psycopg.connect(url, autocommit=True)
    listener.execute("LISTEN bare")
    bare = Bare(connect(url))
    while True:
        for _ in listener.notifies(timeout=1, stop_after=1):
            pass
        while claims := bare.claim(10):
            for claim in claims:
                now = time.clock_gettime(time.CLOCK_REALTIME)
                os.write(stamps, STAMP.pack(claim["args"]["number"], now))
            bare.settle(claims)


if __name__ == "__main__":
    main()
