"""Whether effects came after the end of a lease; how long before it the last ones did."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from typing import TYPE_CHECKING

from proof.crash.jobs import LEASE
from proof.crash.losses import quantile
from proof.partitions import effects
from proof.partitions.run import CUTS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from proof.crash.bed import Bed
    from proof.partitions.run import Break
    from proof.partitions.witness import Witness
    from proof.report import Report

_ATTEMPTS = "SELECT a.job_id, a.token, a.started_at, a.outcome, a.task FROM tenure.attempt AS a"


def tell(
    bed: Bed, report: Report, breaks: Sequence[Break], witness: Witness, ledger: str, losses: int
) -> None:
    """Hold every running period to its lease's end."""
    attempts = {(row[0], row[1]): row[2:] for row in bed.rows(_ATTEMPTS)}
    last = effects.last(ledger)
    margins = {}
    for period, at in last.items():
        # The end as it was last granted; a lease that was never renewed ends with its length.
        granted = attempts[period][0] + timedelta(seconds=LEASE)
        margins[period] = (max(witness.ends.get(period, granted), granted) - at).total_seconds()
    lost: dict[tuple[int, int], Break] = {}
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
    late = [period for period in cut if period in last and last[period] > lost[period].at]
    report.at_least("  with effects after the cut", len(late), losses / 2)
    report.note("effects outside the transaction", effects.count(ledger))
    report.note("looks of the witness", witness.looks)
    report.none(
        "running periods with an effect after their lease's end",
        [(*period, f"{-margin:.3f} s after") for period, margin in margins.items() if margin <= 0],
    )
    shown = [margins[period] for period in late]
    report.note("last effect before the lease's end, worst", min(shown, default=0.0), " s")
    report.note("last effect before the lease's end, median", quantile(shown, 0.5), " s")
