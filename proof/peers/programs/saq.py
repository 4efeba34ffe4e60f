"""SAQ on PostgreSQL; in its documented way with a heartbeat and retries."""

from __future__ import annotations

import asyncio
from typing import Any

from saq import Job, Queue, Worker
from saq.job import Status

from proof.peers.programs import common

SETTINGS = {"documented": {"timeout": 0, "heartbeat": 40, "retries": 3}}


class Program:
    distribution = "saq"

    async def install(self) -> None:
        queue = await _connected()
        await queue.disconnect()

    async def enqueue(self, jobs: int) -> None:
        queue = await _connected()
        for number in range(jobs):
            settings = SETTINGS.get(common.WAY, {})
            await queue.enqueue(Job("handle", {"number": number}, key=f"job-{number}", **settings))
        await queue.disconnect()

    def work(self) -> None:
        asyncio.run(_work())

    async def store(self) -> dict[int, tuple[str, Any]]:
        queue = await _connected()
        known = {
            job.kwargs["number"]: (job.status.value, job.result)
            async for job in queue.iter_jobs(list(Status))
        }
        await queue.disconnect()
        return known


async def handle(_context: dict[str, Any], *, number: int) -> str:
    return await common.ahandle(number)


async def _connected() -> Queue:
    queue = Queue.from_url(common.URL)
    await queue.connect()
    return queue


async def _work() -> None:
    """Who keeps watch takes no jobs. It is there because the first worker that sweeps holds a lock
    for as long as it is connected: stopped, it would keep all others from sweeping."""
    slots = 0 if common.WORKER == "watch" else common.AT_ONCE
    worker = Worker(await _connected(), functions=[("handle", handle)], concurrency=slots)
    await worker.start()


if __name__ == "__main__":
    common.main(Program())
