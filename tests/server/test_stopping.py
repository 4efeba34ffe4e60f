"""A server that is told to stop ends well, and keeps nobody waiting."""

from __future__ import annotations

import signal
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from support.processes import wait_for
from support.serving import serving
from support.store import install

if TYPE_CHECKING:
    from pathlib import Path

    from support.databases import Databases


@pytest.mark.parametrize("sign", [signal.SIGTERM, signal.SIGINT])
def test_who_waits_for_work_is_answered_when_the_server_is_told_to_stop(
    databases: Databases, tmp_path: Path, sign: signal.Signals
) -> None:
    """Shows R32."""
    database = databases.create(databases.template("tenure", install))
    asked = {"queues": ["empty"], "worker": {"name": "here", "language": "none"}, "wait": 50}
    with (
        serving(database, tmp_path) as service,
        service.caller("work") as worker,
        service.caller("read") as scraper,
        ThreadPoolExecutor(1) as pool,
    ):
        waiting = pool.submit(worker.post, "/v1/leases:acquire", json=asked)
        assert wait_for(
            lambda: "tenure_server_acquires_waiting 1" in scraper.get("/metrics").text, 20
        )
        told_at = time.monotonic()
        service.process.send_signal(sign)
        answer = waiting.result(20)

        assert (answer.status_code, answer.json()["jobs"]) == (200, [])
        assert service.process.wait(20) == 0
        assert time.monotonic() - told_at < 8
    databases.drop(database)
