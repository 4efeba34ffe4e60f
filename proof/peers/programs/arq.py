"""arq; in its documented way with a shorter timeout, by which it also knows what is abandoned."""

from __future__ import annotations

import asyncio
from typing import Any

from arq import Worker, create_pool
from arq.connections import RedisSettings
from arq.jobs import Job

from proof.peers.programs import common

SETTINGS = {"documented": {"job_timeout": 30}}


class Program:
    distribution = "arq"

    async def install(self) -> None:
        """Redis is new, and there is nothing to install."""

    async def enqueue(self, jobs: int) -> None:
        redis = await create_pool(_redis())
        for number in range(jobs):
            await redis.enqueue_job("handle", number, _job_id=f"job-{number}")

    def work(self) -> None:
        asyncio.set_event_loop(asyncio.new_event_loop())
        more = SETTINGS.get(common.WAY, {})
        worker = Worker([handle], redis_settings=_redis(), max_jobs=common.AT_ONCE, **more)
        worker.run()

    async def store(self) -> dict[int, tuple[str, Any]]:
        redis = await create_pool(_redis())
        known: dict[int, tuple[str, Any]] = {}
        for number in range(20):
            job = Job(f"job-{number}", redis)
            status = (await job.status()).value
            if status != "not_found":
                found = await job.result_info()
                known[number] = (status, found.result if found else None)
        return known


async def handle(_context: dict[Any, Any], number: int) -> str:
    return await common.ahandle(number)


def _redis() -> RedisSettings:
    return RedisSettings.from_dsn(common.URL)


if __name__ == "__main__":
    common.main(Program())
