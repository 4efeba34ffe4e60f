"""Whether effects came after the end of a lease; how long before it the last ones did."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from proof.checker.whole import margins
from proof.crash.jobs import LEASE
from proof.crash.losses import quantile
from proof.partitions import effects
from proof.partitions.run import CUTS
from proof.poller import LOOKS, OFTEN

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from proof.crash.harness import Bed
    from proof.partitions.run import Break
    from proof.partitions.witness import Period, Witness
    from proof.report import Report

_ATTEMPTS = "SELECT a.job_id, a.token, a.started_at, a.outcome, a.task FROM tenure.attempt AS a"


def tell(
    bed: Bed, report: Report, breaks: Sequence[Break], witness: Witness, ledger: str, losses: int
) -> None:
    """Hold every running period to its lease's end."""
    attempts = {(row[0], row[1]): row[2:] for row in bed.rows(_ATTEMPTS)}
    last = {period: at.timestamp() for period, at in effects.last(ledger).items()}
    ends = last_ends({period: row[0] for period, row in attempts.items()}, witness.ends)
    worst, after = margins(((*period, at) for period, at in last.items()), ends)
    lost: dict[Period, Break] = {}
    for one in breaks:
        for period in one.held:
            if attempts.get(period, (None, "", ""))[1] == "lost":
                lost[period] = one
    cut = {period for period, one in lost.items() if one.fault in CUTS}
    report.at_least("leases lost by partition", len(cut), losses)
    for fault, count in sorted(Counter(one.fault for one in lost.values()).items()):
        report.note(f"  {fault}", count)
    for task, count in sorted(Counter(attempts[period][2] for period in cut).items()):
        report.note(f"  {task}", count)
    late = [p for p in cut if p in last and last[p] > lost[p].at.timestamp()]
    report.at_least("  with effects after the cut", len(late), losses / 2)
    report.note("effects outside the transaction", effects.count(ledger))
    report.at_least(LOOKS, witness.pace, OFTEN)
    # Promised while the parent is scheduled: a machine that stands still may miss it once.
    report.none("running periods with an effect after their lease's end", after, timed=True)
    report.note("last effect before the lease's end, worst", worst, " s")
    shown = [ends[period] - last[period] for period in late]
    report.note("last effect before the lease's end, median", quantile(shown, 0.5), " s")


def last_ends(
    claims: Mapping[Period, datetime], seen: Mapping[Period, datetime]
) -> dict[Period, float]:
    """When each lease ended, by the database's clock: as it was seen last, and not before a lease
    after its claim. An unseen renewal makes this too early, never too late."""
    ends = {period: at.timestamp() + LEASE for period, at in claims.items()}
    for period, at in seen.items():
        if period in ends:
            ends[period] = max(ends[period], at.timestamp())
    return ends
