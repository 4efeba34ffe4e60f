"""Matches runs to targets. Runs are job rows; what the scheduler says of itself, the rows of
skipped ticks, is believed only where the policy in force explains it."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass, field
from operator import itemgetter
from typing import TYPE_CHECKING

from proof.schedules.verdicts import FIRED, LATE, Verdicts

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from datetime import datetime, timedelta

    from proof.report import Report
    from proof.schedules.targets import Stretch, Target


_MISMATCHES = {
    "doubled": "ticks with two jobs",
    "absent": "ticks with no job and no reason",
    "extra": "jobs and tick rows that no target explains",
    "unrecorded": "jobs whose tick row is missing or says otherwise",
    "wrong": "ticks that came to what the policy does not allow",
}


@dataclass(frozen=True, slots=True)
class Run:
    """A job row that names a tick, wherever the job is now."""

    job_id: int
    schedule: str
    tick_at: datetime | None
    made_at: datetime
    run_at: datetime
    ended_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Record:
    """A tick row."""

    schedule: str
    fire_at: datetime
    outcome: str
    reason: str | None
    job_id: int | None
    recorded_at: datetime


@dataclass
class Findings:
    """What does not match, and how much was matched."""

    targets: int = 0
    fired: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    doubled: list[str] = field(default_factory=list)
    absent: list[str] = field(default_factory=list)
    extra: list[str] = field(default_factory=list)
    unrecorded: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)

    @property
    def mismatches(self) -> list[str]:
        """Everything that does not match."""
        return [*self.doubled, *self.absent, *self.extra, *self.unrecorded, *self.wrong]

    @property
    def clean(self) -> bool:
        """Whether everything matches."""
        return not self.mismatches

    @property
    def checked(self) -> int:
        """Ticks that were accounted for: jobs, and rows that say why not."""
        return self.fired + self.skipped.total()

    def tell(self, report: Report, *, timed: Collection[str] = ()) -> None:
        """The figures, with a bar of none for everything that does not match. `timed` names what
        slowness alone can bring about."""
        report.note("ticks that had to be", self.targets)
        report.note("ticks checked", self.checked)
        report.note("  that made a job", self.fired)
        for reason, count in sorted(self.skipped.items()):
            report.note(f"  that made none, and say: {reason}", count)
        for name, words in _MISMATCHES.items():
            report.none(words, getattr(self, name), timed=name in timed)


def check(
    targets: Iterable[Target],
    runs: Iterable[Run],
    records: Iterable[Record],
    *,
    slack: timedelta,
) -> Findings:
    """Match them. `slack` is how much a row's time may lie after the one by which it was judged."""
    found = Findings()
    runs_of: dict[str, dict[datetime, list[Run]]] = {}
    for run in runs:
        if run.tick_at is None:
            found.extra.append(f"job {run.job_id} of {run.schedule} names no tick")
        else:
            runs_of.setdefault(run.schedule, {}).setdefault(run.tick_at, []).append(run)
    records_of: dict[str, dict[datetime, Record]] = {}
    for row in records:
        records_of.setdefault(row.schedule, {})[row.fire_at] = row
    for target in targets:
        _Matching(
            target,
            runs_of.pop(target.name, {}),
            records_of.pop(target.name, {}),
            Verdicts(target, slack=slack),
            found,
        ).match()
    found.extra += [f"{name}: a job, and no such target" for name in runs_of]
    found.extra += [f"{name}: a tick row, and no such target" for name in records_of]
    return found


class _Matching:
    """One schedule's part of it."""

    def __init__(
        self,
        target: Target,
        runs: dict[datetime, list[Run]],
        records: dict[datetime, Record],
        verdicts: Verdicts,
        found: Findings,
    ) -> None:
        self._target = target
        self._runs = runs
        self._record = records
        self._verdicts = verdicts
        self._found = found
        self._lives = sorted(
            ((tick, run.made_at, run.ended_at) for tick, many in runs.items() for run in many),
            key=itemgetter(0),
        )

    def match(self) -> None:
        """Each instant to its job or its row; what is left over is extra."""
        for stretch in self._target.stretches:
            for at in stretch.instants:
                self._instant(stretch, at)
        name = self._target.name
        self._found.extra += [f"{name} {at}: a job, and no such tick" for at in self._runs]
        self._found.extra += [f"{name} {at}: a tick row, and no such tick" for at in self._record]

    def _instant(self, stretch: Stretch, at: datetime) -> None:
        found, sure = self._found, stretch.sure_after < at <= stretch.sure
        found.targets += sure
        runs = self._runs.pop(at, [])
        row = self._record.pop(at, None)
        where = f"{self._target.name} {at}"
        if len(runs) > 1:
            found.doubled.append(f"{where}: jobs {[run.job_id for run in runs]}")
        if runs:
            found.fired += 1
            self._fired(stretch, where, runs[0], row)
        elif row is None:
            if sure:
                found.absent.append(where)
        elif row.outcome != "skipped":
            found.absent.append(f"{where}: no job, and its row says {row.outcome} {row.job_id}")
        else:
            found.skipped[str(row.reason)] += 1
            self._judge(stretch, where, row, str(row.reason))

    def _fired(self, stretch: Stretch, where: str, run: Run, row: Record | None) -> None:
        if row is None:
            self._found.unrecorded.append(f"{where}: job {run.job_id}, and no tick row")
        elif row.outcome != "fired" or row.job_id != run.job_id:
            self._found.unrecorded.append(
                f"{where}: job {run.job_id}, and its row says {row.outcome} {row.job_id}"
            )
        else:
            late = row.reason == "late"
            self._judge(stretch, where, row, LATE if late else FIRED)
            last = max(run.made_at, row.fire_at + stretch.policy.jitter)
            if not max(run.made_at, row.fire_at) <= run.run_at <= last:
                self._found.wrong.append(f"{where}: its job is due at {run.run_at}")

    def _judge(self, stretch: Stretch, where: str, row: Record, outcome: str) -> None:
        """By the row's time; whether a job of an earlier tick lived then is seen by the jobs."""
        if row.recorded_at < row.fire_at:
            self._found.wrong.append(f"{where}: recorded before its time, at {row.recorded_at}")
            return
        allowed = self._verdicts.allowed(stretch, row.fire_at, row.recorded_at, self._busy)
        if outcome not in allowed:
            self._found.wrong.append(
                f"{where}: {outcome}, recorded {row.recorded_at - row.fire_at} late; "
                f"the policy says {' or '.join(sorted(allowed))}"
            )

    def _busy(self, fire_at: datetime, at: datetime) -> bool:
        """Whether the job of the last tick that had made one by then lived. (Under `allow` there
        can be others, which are of no account when the policy becomes `skip`.)"""
        before = bisect_left(self._lives, fire_at, key=itemgetter(0))
        earlier = (self._lives[n] for n in range(before - 1, -1, -1))
        last = next((life for life in earlier if life[1] <= at), None)
        return last is not None and (last[2] is None or last[2] > at)
