"""Chancy, with its default executor and its default plugins."""

from __future__ import annotations

import asyncio
from typing import Any

import psycopg
from chancy import Chancy, Job, Queue, Worker

from proof.peers.programs import common

JOB = Job(func="proof.peers.programs.chancy.handle", queue="default")


class Program:
    distribution = "chancy"

    async def install(self) -> None:
        async with Chancy(common.URL) as chancy:
            await chancy.migrate()
            await chancy.declare(Queue("default", concurrency=common.AT_ONCE))

    async def enqueue(self, jobs: int) -> None:
        async with Chancy(common.URL) as chancy:
            wanted = [JOB.with_kwargs(number=number) for number in range(jobs)]
            async for _ in chancy.push_many(wanted):
                pass

    def work(self) -> None:
        asyncio.run(_work())

    async def store(self) -> dict[int, tuple[str, Any]]:
        with psycopg.connect(common.URL) as connection:
            rows = connection.execute(
                "SELECT (kwargs->>'number')::int, state FROM chancy_jobs"
            ).fetchall()
        return {number: (state, None) for number, state in rows}


def handle(*, number: int) -> None:
    common.handle(number)


async def _work() -> None:
    async with Chancy(common.URL) as chancy, Worker(chancy) as worker:
        await worker.wait_for_shutdown()


if __name__ == "__main__":
    common.main(Program())
