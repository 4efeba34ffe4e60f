"""Tenure, by its command line."""

from __future__ import annotations

from typing import Any

import psycopg

from proof.peers.programs import common
from support.store import install
from tenure import Tenure
from tenure.worker import main as work

_STATES = """
    SELECT args, state, NULL FROM tenure.job
    UNION ALL SELECT args, state, result FROM tenure.job_archive
    UNION ALL SELECT args, 'failed', NULL FROM tenure.job_failed"""

app = Tenure(common.URL)


@app.task
async def handle(number: int) -> str:
    """The common handler."""
    return await common.ahandle(number)


class Program:
    distribution = "tenure"

    async def install(self) -> None:
        install(common.URL)

    async def enqueue(self, jobs: int) -> None:
        await app.aenqueue_many(handle.bind(number=number) for number in range(jobs))
        await app.aclose()

    def work(self) -> None:
        work("proof.peers.programs.tenure:app", concurrency=common.AT_ONCE)

    async def store(self) -> dict[int, tuple[str, Any]]:
        with psycopg.connect(common.URL) as connection:
            rows = connection.execute(_STATES).fetchall()
        return {args["number"]: (state, result) for args, state, result in rows}


if __name__ == "__main__":
    common.main(Program())
