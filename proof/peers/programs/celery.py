"""Celery on Redis, by its command line; results are kept in Redis too."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from celery import Celery

from proof.peers.programs import common

_LATE = {"task_acks_late": True, "task_reject_on_worker_lost": True}
SETTINGS: dict[str, dict[str, Any]] = {
    "late": _LATE,
    "documented": _LATE | {"broker_transport_options": {"visibility_timeout": 30}},
}


class Program:
    distribution = "celery"

    async def install(self) -> None:
        """Redis is new, and there is nothing to install."""

    async def enqueue(self, jobs: int) -> None:
        for number in range(jobs):
            _handle.apply_async([number], task_id=f"job-{number}")

    def work(self) -> None:
        words = ["-m", "celery", "-A", "proof.peers.programs.celery:app", "worker"]
        words += ["--concurrency", str(common.AT_ONCE), "--hostname", f"{common.WORKER}@%h"]
        os.execv(sys.executable, [sys.executable, *words])  # noqa: S606 - its own command line

    async def store(self) -> dict[int, tuple[str, Any]]:
        known: dict[int, tuple[str, Any]] = {}
        with app.connection_for_read() as connection:
            redis = connection.default_channel.client
            for text in redis.lrange("celery", 0, -1):
                known[_number(json.loads(text)["headers"]["id"])] = ("queued", None)
            for text in redis.hvals("unacked"):
                known[_number(json.loads(text)[0]["headers"]["id"])] = ("unacked", None)
            for key in redis.keys("celery-task-meta-*"):
                found = json.loads(redis.get(key))
                known[_number(found["task_id"])] = (found["status"], found["result"])
        return known


def _number(task_id: str) -> int:
    return int(task_id.removeprefix("job-"))


app = Celery("proof", broker=common.URL, backend=common.URL)
app.conf.update(SETTINGS.get(common.WAY, {}))
_handle = app.task(name="handle")(common.handle)


if __name__ == "__main__":
    common.main(Program())
