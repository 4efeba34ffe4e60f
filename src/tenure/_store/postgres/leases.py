"""Leases: claim, renew, report progress, guard, rescue. How they end is in `settlement`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from typing import Any, TypeVar

from tenure._model.attempt import AttemptOutcome
from tenure._model.ids import JobId, Json, Token, WorkerId
from tenure._model.job import JobRow, NewJob, State
from tenure._model.lease import (
    ClaimedJob,
    ClaimResult,
    Lease,
    ProgressResult,
    RenewResult,
    RenewStatus,
    RescuedLease,
    RescueResult,
    StuckLease,
)
from tenure._model.outcome import Settlement
from tenure._model.queue import EVERY_QUEUE, Lane
from tenure._rules import payload
from tenure._rules.lifecycle import ALONE_DEATHS, ALONE_FROM, MAX_DEATHS, MAX_WORKER_LOSSES
from tenure._store.postgres.rows import (
    check_isolation,
    name_arrays,
    name_of,
    row_name,
)
from tenure._store.postgres.settlement import SettlementQueries
from tenure._store.postgres.statements import QueryBase
from tenure._store.steps import Op, RawSql, Rows, atomically
from tenure.config import LONGEST_LEASE
from tenure.errors import LeaseLost

T = TypeVar("T")
_BEGINNING = datetime(1, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
# Worker losses, deaths, suspect, and a max_losses that is not 0.
_NEVER_LOST = (0, 0, 0, 1)


@dataclass(eq=False)
class LeaseQueries(QueryBase):
    """The part of the store that grants leases and takes them back."""

    settlement: SettlementQueries

    def claim(
        self,
        lanes: Sequence[Lane],
        *,
        count: int,
        worker: WorkerId,
        ttl: timedelta | None = None,
        limited: bool = False,
        patient: bool = False,
        within: timedelta | None = None,
        unknown_tasks: Sequence[str] = (),
        suspects: int = ALONE_FROM,
        kept: Sequence[Lease] = (),
    ) -> Op[ClaimResult]:
        """Claim due jobs from lanes in order, in one statement; in a transaction of its own,
        with the queues' rows locked, where a queue has a limit. Suspects come with fewer worker
        losses than `suspects`: 0 for none. Only a limit above `ALONE_FROM` admits those that must
        run alone."""
        asked = _lanes(lanes) | {
            "names": sorted({lane.queue for lane in lanes} | {EVERY_QUEUE}),
            "count": count,
            "worker": worker,
            "ttl": ttl,
            "strangers": list(unknown_tasks),
            "worker_losses": suspects,
            "deaths": ALONE_DEATHS if suspects <= ALONE_FROM else MAX_DEATHS,
        }
        if not limited:
            op = self._claim(asked, worker, patient=patient)
            if patient or within:
                op = atomically(_timed(None if patient else within, op))
            claims = yield from op
            if not claims.limited:
                return claims
        return (
            yield from self._with_partition_fallback(
                lambda day: atomically(self._claim_limited(asked, lanes, worker, day, kept))
            )
        )

    def confirm(
        self, leases: Sequence[Lease], *, fail_on_loss: Sequence[bool] | None = None
    ) -> Op[Sequence[bool]]:
        """Say that these jobs are about to begin, and extend their leases by their own length;
        answers in the order asked. False: the lease was over before, and nothing may begin.
        `fail_on_loss` says of which jobs every loss is the end: an enqueue by name knows no task.

        From here on a loss counts. A claim's commit may wait for a standby until the lease is
        over, and a claim's answer may never arrive: such a claim began nothing
        (docs/design/leases.md, "Confirming a claim").
        """
        fails = [False] * len(leases) if fail_on_loss is None else fail_on_loss
        ordered = sorted(zip(leases, fails, strict=True), key=lambda pair: pair[0].job_id)
        rows = yield self._query(
            "confirm_claim",
            **name_arrays([lease for lease, _ in ordered]),
            ttls=[lease.ttl for lease, _ in ordered],
            fails=[each for _, each in ordered],
        )
        confirmed = {row_name(row) for row in rows}
        return [name_of(lease) in confirmed for lease in leases]

    def _claim(
        self, asked: Mapping[str, object], worker: WorkerId, *, patient: bool
    ) -> Op[ClaimResult]:
        rows = yield replace(self._query("claim", **asked), no_timeout=patient, as_tuples=True)
        return (yield from self._answer(rows, asked, worker, limited=False))

    def _claim_limited(
        self,
        asked: Mapping[str, object],
        lanes: Sequence[Lane],
        worker: WorkerId,
        day: date | None,
        kept: Sequence[Lease],
    ) -> Op[ClaimResult]:
        queues = sorted({lane.queue for lane in lanes})
        limits = yield self._query("lock_queues", names=asked["names"])
        if strange := [row["name"] for row in limits if not row["adopted"]]:
            yield self._query("mark_limited", queues=strange, longest_lease=LONGEST_LEASE)
        rescued: Sequence[RescuedLease] = ()
        if limits:
            names = None if any(row["name"] == EVERY_QUEUE for row in limits) else queues
            rescues = yield from self._rescue(
                day, floor=None, count=1000, queues=names, kept=kept, asked_at=limits[-1]["now"]
            )
            rescued = rescues.jobs
        locked = [row["name"] for row in limits]
        rows = yield replace(self._query("claim_limited", **asked, locked=locked), as_tuples=True)
        claims = yield from self._answer(rows, asked, worker, limited=bool(limits))
        return replace(claims, rescued=rescued)

    def _answer(
        self, rows: Rows, asked: Mapping[str, object], worker: WorkerId, *, limited: bool
    ) -> Op[ClaimResult]:
        """The claims in these rows; where there are none, why, and the time."""
        if not rows:
            gate = (yield self._query("claim_blockers", names=asked["names"]))[0]
            return ClaimResult([], 0, gate["limited"], frozenset(gate["unread"] or ()), gate["now"])
        now, found, unread = rows[0][-3:]
        jobs = [_claimed(row, worker) for row in rows]
        return ClaimResult(jobs, found, limited, frozenset(unread or ()), now)

    def next_due(self, lanes: Sequence[Lane]) -> Op[tuple[datetime | None, datetime]]:
        """The earliest time ahead at which something is due in these lanes, and the time now."""
        places = _lanes(lanes)
        for floors in ("floor_ats", "floor_ids"):
            del places[floors]
        rows = yield self._query("next_due", **places)
        return rows[0]["run_at"], rows[0]["now"]

    def suspect_waits(self, queues: Sequence[str], worker_losses: int) -> Op[bool]:
        """Whether a due suspect waits in these queues that must run alone: by its deaths, or by
        this many worker losses."""
        limits = {"worker_losses": worker_losses, "deaths": ALONE_DEATHS}
        rows = yield self._query("suspect_waits", queues=list(queues), **limits)
        waits: bool = rows[0]["waits"]
        return waits

    def queue_names(
        self, *, patient: bool = False, within: timedelta | None = None
    ) -> Op[Sequence[str]]:
        """The queues that have something queued; `patient` and `within` as of a claim."""
        op = self._queue_names(patient=patient)
        if patient or within:
            op = atomically(_timed(None if patient else within, op))
        return (yield from op)

    def _queue_names(self, *, patient: bool) -> Op[Sequence[str]]:
        rows = yield replace(self._query("queue_names"), no_timeout=patient)
        return [row["name"] for row in rows]

    def renew(
        self, leases: Sequence[Lease], *, began: Sequence[bool] | None = None
    ) -> Op[Sequence[RenewResult]]:
        """Extend leases by their own length; answers in the order asked. Never waits. `began`
        says which handlers have begun (default: all)."""
        rows = yield self._query(
            "renew",
            **name_arrays(leases),
            ttls=[x.ttl for x in leases],
            began=[True] * len(leases) if began is None else list(began),
        )
        answers = {
            row_name(row): RenewResult(RenewStatus.RENEWED, row["cancel_requested"]) for row in rows
        }
        if rest := [x for x in leases if name_of(x) not in answers]:
            holding = yield self._query("busy_leases", **name_arrays(rest))
            answers |= {row_name(row): RenewResult(RenewStatus.BUSY) for row in holding}
        lost = RenewResult(RenewStatus.LOST)
        return [answers.get(name_of(x), lost) for x in leases]

    def progress(
        self,
        lease: Lease,
        *,
        cursor: Json = None,
        items: Mapping[str, Json] | None = None,
        done: int | None = None,
        total: int | None = None,
        message: str | None = None,
        also: Sequence[NewJob] = (),
        log: str | None = None,
    ) -> Op[ProgressResult]:
        """Record a report and extend the lease; settle the job if its target is reached."""
        for key in items or ():
            payload.check_key(key, "an item's key")
        counts = {"done": done, "total": total, "message": message}
        op = self._progress(
            lease,
            cursor=None if cursor is None else payload.encode(cursor, what="the cursor"),
            progress=payload.encode(
                {k: v for k, v in counts.items() if v is not None}, what="the progress"
            ),
            keys=list(items or ()),
            items=[payload.encode(item, what="the items") for item in (items or {}).values()],
        )
        return (yield from atomically(self._reported(op, lease, also, log)))

    def _progress(
        self, lease: Lease, *, cursor: str | None, progress: str, keys: list[str], items: list[str]
    ) -> Op[ProgressResult]:
        rows = yield self._query(
            "progress",
            id=lease.job_id,
            token=lease.token,
            owner=lease.claimed_by,
            ttl=lease.ttl,
            cursor=cursor,
            progress=progress,
            item_keys=keys,
            items=items,
        )
        if not rows:
            raise LeaseLost(f"job {lease.job_id}: the lease is lost or over; stop")
        row = rows[0]
        return ProgressResult(row["items"], row["added"], row["reached"], row["cancel_requested"])

    def _reported(
        self, op: Op[ProgressResult], lease: Lease, also: Sequence[NewJob], log: str | None
    ) -> Op[ProgressResult]:
        """The report, and the end of the job if it has reached its target."""
        reported = yield from op
        if reported.reached:
            reached = Settlement(State.COMPLETED, AttemptOutcome.COMPLETED, reason="target_reached")
            yield from self.settlement.settle_within(lease, reached, also=also, log=log)
        return reported

    def guard(self, lease: Lease) -> Op[None]:
        """Fence a caller's transaction until its commit, without ending the job."""
        rows = yield self._within(
            "guard", id=lease.job_id, token=lease.token, owner=lease.claimed_by
        )
        if not rows:
            raise LeaseLost(f"job {lease.job_id}: the lease is lost; roll back")
        check_isolation(rows[0])

    def rescue(
        self,
        *,
        floor: datetime | None = None,
        count: int = 500,
        kept: Sequence[Lease] = (),
    ) -> Op[RescueResult]:
        """End leases that ran out, above a floor. Any process may, any number at once; what the
        caller itself still holds (`kept`) is left for it to give back."""
        return self._with_partition_fallback(
            lambda day: self._rescue(day, floor=floor, count=count, queues=None, kept=kept)
        )

    def overdue(self, older_than: timedelta, *, count: int = 10) -> Op[Sequence[StuckLease]]:
        """Leases that have been over for longer than this, and who keeps them from a rescue."""
        rows = yield self._query("overdue", older_than=older_than, count=count)
        return [
            StuckLease(JobId(row["id"]), row["pid"], row["application_name"], row["since"])
            for row in rows
        ]

    def _rescue(
        self,
        day: date | None,
        *,
        floor: datetime | None,
        count: int,
        queues: list[str] | None,
        kept: Sequence[Lease],
        asked_at: datetime | None = None,
    ) -> Op[RescueResult]:
        """Rescue in one statement. `asked_at` is the database's time just before it, where the
        transaction began earlier."""
        rows = yield self._query(
            "rescue",
            floor=floor or _BEGINNING,
            count=count,
            queues=queues,
            filed_on=day,
            holder=kept[0].claimed_by if kept else None,
            kept=[lease.job_id for lease in kept],
            max_worker_losses=MAX_WORKER_LOSSES,
            max_deaths=MAX_DEATHS,
            asked_at=asked_at,
            alone_deaths=ALONE_DEATHS,
        )
        jobs = [
            RescuedLease(
                JobId(row["id"]),
                Token(row["token"]),
                WorkerId(row["claimed_by"]),
                row["queue"],
                State(row["state"]),
                row["worker_losses"],
                row["done_reason"] if row["state"] != State.QUEUED else None,
                row["task"],
                row["attempt"],
                row["max_attempts"],
                row["key"],
                row["meta"],
            )
            for row in rows
            if row["id"] is not None
        ]
        return RescueResult(jobs, rows[0]["found"], rows[0]["now"])


def _timed(within: timedelta | None, op: Op[T]) -> Op[T]:
    """The same with another statement timeout; 0 is none, for a scan from zero may take long."""
    yield RawSql(f"SET LOCAL statement_timeout = {(within or timedelta(0)) // _MILLISECOND}")
    return (yield from op)


def _claimed(row: tuple[Any, ...], worker: WorkerId) -> ClaimedJob:
    """One job from its row of a claim. In the order of the fields: by their names it would take
    a third of a worker's time."""
    (
        job_id, token, queue, task, key, args, priority, attempt, max_attempts, losses,
        run_at, created_at, claimed_at, expires_at, cursor, progress, items, meta,
        lost, returned, _now, _found, _unread,
    ) = row  # fmt: skip
    # No array for a fresh job, which pays no statement more either: only a job that was lost
    # before, or that fails on loss, must be known to have begun.
    worker_losses, deaths, suspect, max_losses = lost or _NEVER_LOST
    job = JobRow(
        job_id, State.RUNNING, queue, task, args, priority, attempt, max_attempts, losses, token,
        run_at, created_at, key, False, False, worker, claimed_at, expires_at,
        None, None, None, cursor, progress, items, meta, worker_losses, deaths, bool(suspect),
    )  # fmt: skip
    # Whole milliseconds: the statement reads the clock once for each end.
    ttl = expires_at - claimed_at
    ttl = timedelta(ttl.days, ttl.seconds, ttl.microseconds // 1000 * 1000)
    confirm = deaths > 0 or max_losses == 0
    return ClaimedJob(job, Lease(job_id, token, worker, ttl), returned, confirm)


def _lanes(lanes: Sequence[Lane]) -> dict[str, object]:
    """Lanes as parameter arrays: by priority, and in each what was given back before the rest."""
    ordered = sorted(
        ((lane, returned) for lane in lanes for returned in (True, False)),
        key=lambda place: (-place[0].priority, not place[1]),
    )
    floors = [None if returned else lane.floor for lane, returned in ordered]
    return {
        "queues": [lane.queue for lane, _ in ordered],
        "priorities": [lane.priority for lane, _ in ordered],
        "returned": [returned for _, returned in ordered],
        "floor_ats": [floor.run_at if floor else _BEGINNING for floor in floors],
        "floor_ids": [floor.id if floor else 0 for floor in floors],
    }
