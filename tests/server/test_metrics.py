"""What `/metrics` of a real server says, and when it asks the database."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from time import monotonic
from typing import TYPE_CHECKING

import httpx
import psycopg
import pytest

from support.processes import wait_for
from support.promtool import promtool
from support.proxy import Proxy
from support.store import install
from tenure._metrics import CONTENT_TYPE, SERVER
from tenure.admin import By
from tests.server.conftest import serving

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.databases import Databases
    from tests.server.conftest import Service

_LINE = re.compile(r"^(\w+)(?:\{(.*)\})? (\S+)$")
OPS = By("ops")
Samples = dict[str, float]


def samples(text: str) -> Samples:
    """The values of a page, by name and labels as they are written."""
    found = {}
    for line in text.splitlines():
        if not line.startswith("#"):
            name, value = line.rsplit(" ", 1)
            assert _LINE.match(line), line
            assert name not in found, name
            found[name] = float(value)
    return found


@pytest.fixture
def proxied(databases: Databases, tmp_path: Path) -> Iterator[tuple[Service, Proxy]]:
    """A server that can be cut off from its database."""
    database = databases.create(databases.template("tenure", install))
    with Proxy(database) as proxy, serving(proxy.url, tmp_path) as service:
        yield service, proxy
        proxy.restore()
    databases.drop(database)


def furnish(service: Service) -> None:
    """Something of everything that is shown."""
    for _ in range(2):
        service.enqueue("mail")
    service.enqueue("mail", delay=3600)
    service.enqueue("bulk")
    with service.caller() as caller:
        request = {"queues": ["bulk"], "worker": {"name": "here", "slots": 3}}
        caller.post("/v1/leases:acquire", json=request)
        caller.post("/v1/queues/bulk:pause", json={"reason": "too many"})
    service.admin.schedules.create("nightly", "report", OPS, every=3600)


def fold(service: Service) -> None:
    """A minute is folded: 3 attempts of a task completed, after waits of 40 ms."""
    waits = [0, 0, 0, 3] + [0] * 15
    with psycopg.connect(service.database, autocommit=True) as connection:
        connection.execute(
            """
            INSERT INTO tenure.rollup_minute
            SELECT date_trunc('minute', now()), 'mail', 'send "it"', 3, 0, 0, 0, 0, 0, 1, 0,
                0.12, 0.2, %s, %s
            """,
            [waits, waits],
        )
        connection.execute(
            """
            INSERT INTO tenure.rollup_state (final_to, marked_to, counted_until, mark)
            SELECT 'epoch', 'epoch', m, pg_snapshot_xmax(pg_current_snapshot())
            FROM date_trunc('minute', now() + interval '1 minute') AS m
            ON CONFLICT (singleton) DO UPDATE SET counted_until = excluded.counted_until
            """
        )


def test_a_scrape_shows_the_installation_and_a_cut_off_server_what_it_knows(
    proxied: tuple[Service, Proxy], tmp_path: Path
) -> None:
    """Shows R30, R37."""
    service, proxy = proxied
    furnish(service)
    with service.caller("read") as scraper:

        def scrape() -> Samples:
            return samples(scraper.get("/metrics").text)

        # Together, and the first of all: one round of questions.
        with ThreadPoolExecutor(5) as pool:
            answers = list(pool.map(lambda _: scrape(), range(5)))
        first = answers[0]
        assert all(
            each['tenure_metrics_collections_total{outcome="whole"}'] == 1 for each in answers
        )
        assert first["tenure_database_up"] == 1
        assert first['tenure_queue_jobs{queue="mail",state="due"}'] == 2
        assert first['tenure_queue_jobs{queue="mail",state="scheduled"}'] == 1
        assert first['tenure_queue_jobs{queue="bulk",state="running"}'] == 1
        assert first['tenure_queue_oldest_due_age_seconds{queue="mail"}'] > 0
        assert first['tenure_queue_workers{queue="mail"}'] == 0
        assert first['tenure_queue_paused{queue="bulk"}'] == 1
        assert first['tenure_queue_paused{queue="mail"}'] == 0
        assert first["tenure_schedules_due"] == 0
        assert first['tenure_table_bytes{table="job"}'] > 0
        assert (
            first['tenure_server_requests_total{method="POST",route="/v1/jobs",status="201"}'] == 4
        )

        fold(service)
        mail = 'queue="mail",task="send \\"it\\""'
        ended = f'tenure_attempts_ended_total{{{mail},outcome="completed"}}'
        assert wait_for(lambda: scrape().get(ended) == 3, 100)
        page = scraper.get("/metrics")
        assert page.headers["content-type"] == CONTENT_TYPE
        names = set(re.findall(r"^# TYPE (\w+)", page.text, re.MULTILINE))
        assert names == {metric.name for metric in SERVER}
        found = samples(page.text)
        assert found[f'tenure_attempts_ended_total{{{mail},outcome="lost"}}'] == 1
        assert found[f'tenure_attempt_wait_seconds_bucket{{{mail},le="0.025"}}'] == 0
        assert found[f'tenure_attempt_wait_seconds_bucket{{{mail},le="0.05"}}'] == 3
        assert found[f"tenure_attempt_wait_seconds_sum{{{mail}}}"] == pytest.approx(0.12)
        assert found['tenure_workers{state="active"}'] == 1
        assert found['tenure_queue_workers{queue="bulk"}'] == 1
        assert found["tenure_slots"] == 3
        assert promtool("check", "metrics", given=page.text) == ""

        unseen = service.admin.tokens.create("unseen", OPS, scopes=["read"])
        proxy.cut()
        began = monotonic()
        assert wait_for(lambda: scrape()["tenure_database_up"] == 0, 60)
        away = scrape()
        assert monotonic() - began < 25
        assert away[ended] == 3
        assert not any(name.startswith("tenure_queue_jobs") for name in away)
        # A client that was refused before is refused now.
        headers = {"Authorization": f"Bearer {unseen.secret}"}
        answer = httpx.get(f"{service.url}/metrics", headers=headers, timeout=30)
        assert (answer.status_code, answer.json()["code"]) == (503, "database-away")
        proxy.restore()
        assert wait_for(lambda: scrape()["tenure_database_up"] == 1, 60)
