"""What is asked of a server beside many rows: each question, each page, and an open tab."""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import httpx

from bench.speed.meters import family_seconds

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from bench.report import Report
    from proof.via_http.server import Server as Serving

# Seconds, p95; and the share of a core that an open Overview may take of the database.
ANSWER, PAGE, TAB = 0.1, 0.3, 0.01
REQUESTS = 60
_EVERY = 2.0
_SECONDS, _SHORT_SECONDS = 60, 10


def questions(job: int) -> dict[str, str]:
    """What is asked, by name."""
    now = datetime.now(UTC)
    day, week = ((now - timedelta(days=d)).strftime("%Y-%m-%dT%H:%M:%SZ") for d in (1, 7))
    jobs = {
        f"jobs {text.replace('&', ', ').replace('=', ' ')}": f"/v1/jobs?{text}"
        for text in (
            "state=queued",
            "state=queued&queue=q3",
            "state=queued&queue=q3&task=t3",
            "state=queued&task=t49",
            "state=running",
            "state=running&queue=q1",
            "state=completed",
            "state=completed&queue=q3",
            "state=completed&queue=q3&task=t3",
            "state=completed&task=none",
            "state=cancelled",
            "state=failed",
            "state=failed&queue=q3",
            "state=failed&task=t3",
        )
    }
    return jobs | {
        "a job": f"/v1/jobs/{job}",
        "its attempts": f"/v1/jobs/{job}/attempts",
        "why it does not run": f"/v1/jobs/{job}/why",
        "dead letters in groups": "/v1/failed/groups",
        "dead letters of a task in groups": "/v1/failed/groups?task=t3",
        "stats of an hour": "/v1/stats",
        "stats of an hour, a queue": "/v1/stats?queue=q3",
        "stats of a day, hourly": f"/v1/stats?since={day}&step=3600",
        "stats of a day, a task": f"/v1/stats?since={day}&step=3600&task=t3",
        "stats of a week, daily": f"/v1/stats?since={week}&step=86400",
        "queues": "/v1/queues",
        "workers": "/v1/workers",
        "operations": "/v1/operations",
        "audit of a queue": "/v1/audit?target=queue:q3",
        "settings": "/v1/settings",
    }


def pages(job: int) -> dict[str, str]:
    """The dashboard's pages, by name."""
    return {
        "page Overview": "/",
        "page Overview of a day": "/?over=24h",
        "page Queues": "/queues",
        "page of a queue": "/queues/q3",
        "page Jobs": "/jobs",
        "page Jobs, completed": "/jobs?filter=state:completed",
        "page Jobs, of a queue and a task": "/jobs?filter=queue:q3+task:t3",
        "page Jobs, by arguments": "/jobs?filter=state:completed+args.n:77",
        "page of a job": f"/jobs/{job}",
        "page Schedules": "/schedules",
        "page Workers": "/workers",
        "page Dead letters": "/failed",
        "page Dead letters of a queue": "/failed?queue=q3",
        "page Operations": "/operations",
        "page Audit": "/audit",
        "page System": "/system",
    }


@dataclass(frozen=True)
class Asking:
    """A client with an access token, and the processes whose time it takes."""

    serving: Serving
    database: int
    secret: str
    report: Report

    def questions(self, job: int) -> None:
        """Every list and figure of the API."""
        with self._caller(headers={"Authorization": f"Bearer {self.secret}"}) as caller:
            self._ask(caller, "lists", questions(job), ANSWER)

    def pages(self, job: int) -> None:
        """Every page."""
        with self._caller() as caller:
            caller.post("/sign-in", data={"token": self.secret})
            self._ask(caller, "pages", pages(job), PAGE)

    def tab(self, short: bool) -> None:
        """What an open Overview costs the database: it asks for itself every two seconds. The
        server has to learn first what an answer costs."""
        seconds = _SHORT_SECONDS if short else _SECONDS
        idle = self._database_over(seconds, lambda: None)
        with self._caller() as caller:
            caller.post("/sign-in", data={"token": self.secret})
            self._database_over(_SHORT_SECONDS, lambda: caller.get("/").raise_for_status())
            busy = self._database_over(seconds, lambda: caller.get("/").raise_for_status())
        share = max(busy - idle, 0) / seconds
        self.report.line(
            "tab:idle", f"  the database without a tab: {100 * idle / seconds:.2f} % of a core"
        )
        self.report.bar(
            "tab", "an open Overview, of the database's core", 100 * share, 100 * TAB, " %"
        )

    def _database_over(self, seconds: int, act: Callable[[], object]) -> float:
        before, until = family_seconds(self.database), time.monotonic() + seconds
        while time.monotonic() < until:
            act()
            time.sleep(_EVERY)
        return family_seconds(self.database) - before

    def _caller(self, *, headers: Mapping[str, str] | None = None) -> httpx.Client:
        return httpx.Client(base_url=self.serving.url, headers=headers, timeout=60)

    def _ask(
        self, caller: httpx.Client, kind: str, requested: Mapping[str, str], bar: float
    ) -> None:
        """Wall time by request; processor time as a mean, which holds still on a shared machine."""
        heads = ("p50", "p95", "max", "database", "server")
        print(f"  {'':<44} {' '.join(f'{head:>8}' for head in heads)}  ms")
        worst = 0.0
        for name, path in requested.items():
            times = []
            before = family_seconds(self.database), family_seconds(self.serving.pid)
            for _ in range(REQUESTS):
                began = time.perf_counter()
                answer = caller.get(path)
                times.append(time.perf_counter() - began)
                assert answer.is_success, f"{path}: {answer.text}"
            p50, p95 = statistics.median(times), statistics.quantiles(times, n=20)[-1]
            worst = max(worst, p95)
            after = family_seconds(self.database), family_seconds(self.serving.pid)
            used = [(b - a) / REQUESTS for a, b in zip(before, after, strict=True)]
            figures = [1000 * one for one in (p50, p95, max(times), *used)]
            shown = " ".join(f"{one:8.1f}" for one in figures)
            self.report.line(
                f"{kind}:{name}",
                f"  {name:<44} {shown}",
                path=path,
                **dict(zip(heads, figures, strict=True)),
            )
        self.report.bar(kind, f"the slowest of the {kind}, p95", 1000 * worst, 1000 * bar, " ms")
