"""Dramatiq on Redis, by its command line."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import dramatiq
from dramatiq.brokers.redis import RedisBroker

from proof.peers.programs import common


class Program:
    distribution = "dramatiq"

    async def install(self) -> None:
        """Redis is new, and there is nothing to install."""

    async def enqueue(self, jobs: int) -> None:
        for number in range(jobs):
            _handle.send(number)

    def work(self) -> None:
        words = ["-m", "dramatiq", "proof.peers.programs.dramatiq"]
        words += ["--processes", "1", "--threads", str(common.AT_ONCE)]
        os.execv(sys.executable, [sys.executable, *words])  # noqa: S606 - its own command line

    async def store(self) -> dict[int, tuple[str, Any]]:
        """What is acknowledged is not there any more."""
        redis = _broker.client
        waiting = set(redis.lrange("dramatiq:default", 0, -1))
        known: dict[int, tuple[str, Any]] = {}
        for queue, words in {"default": ("fetched", "queued"), "default.XQ": ("dead",) * 2}.items():
            for name, text in redis.hgetall(f"dramatiq:{queue}.msgs").items():
                known[json.loads(text)["args"][0]] = (words[name in waiting], None)
        return known


def handle(number: int) -> None:
    common.handle(number)


_broker = RedisBroker(url=common.URL)
dramatiq.set_broker(_broker)
_handle = dramatiq.actor(handle)


if __name__ == "__main__":
    common.main(Program())
