"""RQ, by its command line: a worker runs one job at a time, so there are several workers."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from redis import Redis
from rq import Queue, Retry
from rq.job import Job

from bench.peers._common import in_processes
from proof.peers.programs import common

WORKERS = 4


class Program:
    distribution = "rq"

    async def install(self) -> None:
        """Redis is new, and there is nothing to install."""

    async def enqueue(self, jobs: int) -> None:
        queue = Queue(connection=Redis.from_url(common.URL))
        more = {"retry": Retry(max=3)} if common.WAY == "documented" else {}
        for number in range(jobs):
            queue.enqueue(common.handle, number, job_id=f"job-{number}", **more)

    def work(self) -> None:
        in_processes(WORKERS, _work)

    async def store(self) -> dict[int, tuple[str, Any]]:
        redis = Redis.from_url(common.URL)
        known: dict[int, tuple[str, Any]] = {}
        for job in Job.fetch_many([f"job-{number}" for number in range(20)], connection=redis):
            if job is not None:
                known[job.args[0]] = (job.get_status().value, job.return_value())
        return known


def _work() -> None:
    program = str(Path(sys.executable).parent / "rq")
    more = ["--maintenance-interval", "30"] if common.WAY == "documented" else []
    os.execv(program, [program, "worker", "--url", common.URL, *more])  # noqa: S606 - its own


if __name__ == "__main__":
    common.main(Program())
