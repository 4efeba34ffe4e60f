"""What the database is asked while clients wait for work: by 10 of them, and by 200."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from bench.serving.bed import CLIENTS, serviced
from bench.workers import until

if TYPE_CHECKING:
    from bench.report import Report
    from bench.server import Server

_FEW = 10
_SECONDS = 20
_SHORT_SECONDS = 5
# A few more, as services look when they look.
_BAR = 1.5
_CALLS = "SELECT coalesce(sum(s.calls), 0)::float8 FROM pg_stat_statements AS s"
_WAITING = "SELECT count(*) FROM tenure.worker WHERE state = 'active'"


def run(server: Server, report: Report) -> None:
    seconds = _SHORT_SECONDS if report.short else _SECONDS
    report.title(f"Waiting: statements while clients wait, {seconds} s each")
    found = {clients: _wait(server, report, clients, seconds) for clients in (_FEW, CLIENTS)}
    report.bar(
        "waiting",
        f"statements with {CLIENTS} clients against {_FEW}",
        found[CLIENTS] / found[_FEW],
        _BAR,
    )


def _wait(server: Server, report: Report, clients: int, seconds: int) -> float:
    url = server.database()
    with server.admin(url) as admin:
        admin.execute("CREATE EXTENSION IF NOT EXISTS pg_stat_statements")
        with serviced(server, url, clients=clients, count=50) as bed:

            def all_wait() -> bool:
                row: Any = admin.execute(_WAITING).fetchone()
                return bool(row[0] >= clients)

            until(all_wait, 120)
            admin.execute("SELECT pg_stat_statements_reset()")
            before, began = bed.cost(), time.monotonic()
            time.sleep(seconds)
            row: Any = admin.execute(_CALLS).fetchone()
            took, cost = time.monotonic() - began, bed.cost() - before
    server.drop(url)
    rate = float(row[0]) / took
    report.line(
        f"waiting:{clients}",
        f"  {clients:4} clients: {rate:.1f} statements/s; of a core: database "
        f"{100 * cost.database / took:.1f} %, server {100 * cost.server / took:.1f} %",
        statements=rate,
        database=cost.database / took,
        server=cost.server / took,
    )
    return rate
