"""5,000 leases held by 50 workers, renewed every 10 s: the share of a core it takes."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING, Any
from uuid import UUID

from bench.measure import Meter
from bench.subjects import QUEUE
from tenure._model.ids import WorkerId
from tenure._model.lease import RenewStatus
from tenure._model.queue import Lane

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bench.report import Report
    from bench.server import Server
    from bench.subjects import Tenure
    from tenure._model.lease import Lease

WORKERS, EACH, EVERY = 50, 100, 10.0
ONE_BY_ONE = 500


def run(server: Server, report: Report) -> None:
    url = server.database()
    tenure = server.tenure(url)
    report.title("Renewing 5,000 leases of 50 workers every 10 s")
    held = hold(tenure)
    batches, single = [], []
    for _ in range(5):
        batches.append(_share(tenure, held) / EVERY)
        alone = [[lease] for lease in held[0][:10]] * (ONE_BY_ONE // 10)
        single.append(_share(tenure, alone) * WORKERS * EACH / ONE_BY_ONE / EVERY)
    together, apart = statistics.median(batches) * 100, statistics.median(single) * 100
    report.bar("renew", "statements of 100: share of one core", together, 3, " %")
    report.line(
        "renew:single",
        f"  one by one: {apart:.1f} % (from {ONE_BY_ONE} renewals)",
        percent=apart,
    )
    tenure.connection.close()
    server.drop(url)


def hold(tenure: Tenure, workers: int = WORKERS) -> list[list[Lease]]:
    """Leases of as many workers, 100 each."""
    held = []
    for number in range(1, workers + 1):
        tenure.enqueue(EACH, "{}")
        worker = WorkerId(UUID(int=number))
        claims: Any = tenure.session.run(
            tenure.store.leases.claim([Lane(QUEUE, 5)], count=EACH, worker=worker)
        )
        held.append([claimed.lease for claimed in claims.jobs])
    return held


def _share(tenure: Tenure, batches: Sequence[Sequence[Lease]]) -> float:
    meter = Meter()
    with meter.time(tenure.connection, "renew"):
        for leases in batches:
            answers = tenure.session.run(tenure.store.leases.renew(leases))
            if any(a.answer is not RenewStatus.RENEWED for a in answers):
                raise AssertionError("a lease was lost while it was being measured")
    return meter.cpu["renew"]
