"""PgQueuer, with asyncpg."""

from __future__ import annotations

import asyncio
import os
from typing import Any

import asyncpg
from pgqueuer import PgQueuer
from pgqueuer.db import AsyncpgDriver
from pgqueuer.models import Job  # noqa: TC002 - PgQueuer reads handlers' annotations
from pgqueuer.queries import Queries

from proof.peers.programs import common

# Numbers are from 0 on and ids from 1 on; a job that is done is only in the log.
_STATES = """
    SELECT DISTINCT ON (id) id - 1 AS number, status FROM (
        SELECT id, status::text, 1 AS newer, 0 AS at FROM pgqueuer
        UNION ALL SELECT job_id, status::text, 0, id FROM pgqueuer_log
    ) AS known ORDER BY id, newer DESC, at DESC"""


class Program:
    distribution = "pgqueuer"

    async def install(self) -> None:
        await (await _queries()).install()

    async def enqueue(self, jobs: int) -> None:
        payloads = [str(number).encode() for number in range(jobs)]
        await (await _queries()).enqueue(["handle"] * jobs, payloads, [0] * jobs)

    def work(self) -> None:
        asyncio.run(_work())

    async def store(self) -> dict[int, tuple[str, Any]]:
        connection = await asyncpg.connect(common.URL, timeout=10)
        return {row["number"]: (row["status"], None) for row in await connection.fetch(_STATES)}


async def _queries() -> Queries:
    return Queries(AsyncpgDriver(await asyncpg.connect(common.URL, timeout=10)))


async def _work() -> None:
    application = PgQueuer((await _queries()).driver)

    async def handle(job: Job) -> None:
        await common.ahandle(int(job.payload))

    application.entrypoint("handle")(handle)
    await application.run()
    os._exit(0)


if __name__ == "__main__":
    common.main(Program())
