"""A server that is stopped ends well, and keeps no client waiting."""

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
def test_waiting_claims_are_answered_when_the_server_stops(
    databases: Databases, tmp_path: Path, sign: signal.Signals
) -> None:
    """Shows R32."""
    database = databases.create(databases.template("tenure", install))
    request = {"queues": ["empty"], "worker": {"name": "here", "language": "none"}, "wait": 50}
    with (
        serving(database, tmp_path) as service,
        service.caller("work") as worker,
        service.caller("read") as scraper,
        ThreadPoolExecutor(1) as pool,
    ):
        waiting = pool.submit(worker.post, "/v1/leases:acquire", json=request)
        assert wait_for(
            lambda: "tenure_server_acquires_waiting 1" in scraper.get("/metrics").text, 20
        )
        stopped_at = time.monotonic()
        service.process.send_signal(sign)
        answer = waiting.result(20)

        assert (answer.status_code, answer.json()["jobs"]) == (200, [])
        assert service.process.wait(20) == 0
        assert time.monotonic() - stopped_at < 8
    databases.drop(database)
