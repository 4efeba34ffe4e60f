"""Leases: claim, renew, report progress, guard, rescue. Endings are in `settlement`."""

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
    UnreadableClaim,
)
from tenure._model.outcome import Settlement, SettleRequest
from tenure._model.queue import EVERY_QUEUE, Lane
from tenure._rules import payload
from tenure._rules.lifecycle import ALONE_DEATHS, ALONE_FROM, MAX_DEATHS, MAX_WORKER_LOSSES
from tenure._rules.readable import job_problem, shown_meta
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
from tenure.errors import Error, LeaseLost, StoreError

T = TypeVar("T")
_BEGINNING = datetime(1, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
# Worker losses, deaths, suspect, and a nonzero max_losses.
_NEVER_LOST = (0, 0, 0, 1)
# After finding this many unreadable jobs and no others, a claim leaves the rest to the next one.
_MOST_UNREADABLE = 100


@dataclass(eq=False)
class LeaseQueries(QueryBase):
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
        """Claim due jobs from lanes in order, in one statement.

        If a queue has a limit, the claim is a transaction that locks the queues' rows. `limited` is
        a hint, based on the last result, that this may be the case. `patient` allows a slow scan
        from zero, while `within` sets a timeout. Jobs of `unknown_tasks` are left to others.
        A suspect is claimed only if it has fewer worker losses than `suspects`, so 0 excludes all
        suspects. Suspects that must run alone are claimed only if `suspects` exceeds `ALONE_FROM`.
        `kept` lists the caller's own leases, which claims never rescue.
        """
        params = _lanes(lanes) | {
            "names": sorted({lane.queue for lane in lanes} | {EVERY_QUEUE}),
            "count": count,
            "worker": worker,
            "ttl": ttl,
            "strangers": list(unknown_tasks),
            "worker_losses": suspects,
            "deaths": ALONE_DEATHS if suspects <= ALONE_FROM else MAX_DEATHS,
        }
        rescued: list[RescuedLease] = []
        unreadable: list[UnreadableClaim] = []
        while True:
            claims = yield from self._claim_once(
                params, lanes, worker, limited=limited, patient=patient, within=within, kept=kept
            )
            rescued += claims.rescued
            unreadable += claims.unreadable
            yield from self._fail_unreadable(claims.unreadable)
            # Unreadable jobs must not keep the ones behind them from being claimed.
            if claims.jobs or not claims.unreadable or len(unreadable) >= _MOST_UNREADABLE:
                return replace(claims, rescued=rescued, unreadable=unreadable)
            limited = claims.limited

    def _claim_once(
        self,
        params: Mapping[str, object],
        lanes: Sequence[Lane],
        worker: WorkerId,
        *,
        limited: bool,
        patient: bool,
        within: timedelta | None,
        kept: Sequence[Lease],
    ) -> Op[ClaimResult]:
        if not limited:
            op = self._claim(params, worker, patient=patient)
            if patient or within:
                op = atomically(_timed(None if patient else within, op))
            claims = yield from op
            if not claims.limited:
                return claims
        return (
            yield from self._with_partition_fallback(
                lambda day: atomically(self._claim_limited(params, lanes, worker, day, kept))
            )
        )

    def _fail_unreadable(self, claims: Sequence[UnreadableClaim]) -> Op[None]:
        """Turn claimed jobs that can't be read into dead letters, each under its own lease."""
        if not claims:
            return
        try:
            yield from self.settlement.settle(
                [
                    SettleRequest(
                        claim.lease,
                        Settlement(
                            State.FAILED,
                            AttemptOutcome.FAILED,
                            reason="unreadable",
                            error=Error("Unreadable", claim.why),
                        ),
                    )
                    for claim in claims
                ]
            )
        except StoreError:
            # The jobs that were claimed along with these must start. These will be rescued and
            # claimed again.
            return

    def confirm(
        self, leases: Sequence[Lease], *, fail_on_loss: Sequence[bool] | None = None
    ) -> Op[Sequence[bool]]:
        """Confirm that these jobs are about to start, and renew their leases.

        Results are in request order. False means that the lease has expired and the job must
        not start. `fail_on_loss` lists the jobs that must end after any loss, because the row
        of a job that was enqueued by name doesn't have that option yet.

        From this point on, a loss counts. A loss without a confirmation doesn't count, because the
        handler may never have started. The claim's commit may have waited for a standby until the
        lease expired, and its response may never have arrived (docs/design/leases.md, "Confirming a
        claim").
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
        self, params: Mapping[str, object], worker: WorkerId, *, patient: bool
    ) -> Op[ClaimResult]:
        rows = yield replace(self._query("claim", **params), no_timeout=patient, as_tuples=True)
        return (yield from self._answer(rows, params, worker, limited=False))

    def _claim_limited(
        self,
        params: Mapping[str, object],
        lanes: Sequence[Lane],
        worker: WorkerId,
        day: date | None,
        kept: Sequence[Lease],
    ) -> Op[ClaimResult]:
        queues = sorted({lane.queue for lane in lanes})
        limits = yield self._query("lock_queues", names=params["names"])
        if unadopted := [row["name"] for row in limits if not row["adopted"]]:
            yield self._query("mark_limited", queues=unadopted, longest_lease=LONGEST_LEASE)
        rescued: Sequence[RescuedLease] = ()
        if limits:
            names = None if any(row["name"] == EVERY_QUEUE for row in limits) else queues
            rescues = yield from self._rescue(
                day, floor=None, count=1000, queues=names, kept=kept, before_at=limits[-1]["now"]
            )
            rescued = rescues.jobs
        locked = [row["name"] for row in limits]
        rows = yield replace(self._query("claim_limited", **params, locked=locked), as_tuples=True)
        claims = yield from self._answer(rows, params, worker, limited=bool(limits))
        return replace(claims, rescued=rescued)

    def _answer(
        self, rows: Rows, params: Mapping[str, object], worker: WorkerId, *, limited: bool
    ) -> Op[ClaimResult]:
        """Return the claimed jobs from these rows.

        If there aren't any, return the reason and the current time.
        """
        if not rows:
            gate = (yield self._query("claim_blockers", names=params["names"]))[0]
            return ClaimResult([], 0, gate["limited"], frozenset(gate["unread"] or ()), gate["now"])
        now, found, unread = rows[0][-3:]
        jobs: list[ClaimedJob] = []
        unreadable: list[UnreadableClaim] = []
        for row in rows:
            claimed = _claimed(row, worker)
            if isinstance(claimed, ClaimedJob):
                jobs.append(claimed)
            else:
                unreadable.append(claimed)
        queues = frozenset(unread or ())
        return ClaimResult(jobs, found, limited, queues, now, unreadable=unreadable)

    def next_due(self, lanes: Sequence[Lane]) -> Op[tuple[datetime | None, datetime]]:
        """Return when these lanes' next job is due, and the current time."""
        places = _lanes(lanes)
        for floors in ("floor_ats", "floor_ids"):
            del places[floors]
        rows = yield self._query("next_due", **places)
        return rows[0]["run_at"], rows[0]["now"]

    def suspect_waits(self, queues: Sequence[str], worker_losses: int) -> Op[bool]:
        """Return whether a due suspect must run alone because of its deaths or worker losses."""
        limits = {"worker_losses": worker_losses, "deaths": ALONE_DEATHS}
        rows = yield self._query("suspect_waits", queues=list(queues), **limits)
        waits: bool = rows[0]["waits"]
        return waits

    def queue_names(
        self, *, patient: bool = False, within: timedelta | None = None
    ) -> Op[Sequence[str]]:
        """Return the queues that have queued jobs.

        `patient` and `within` work as they do in `claim`.
        """
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
        """Extend each lease by its own length, without waiting.

        Results are in request order.
        """
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
        extend: timedelta | None = None,
        also: Sequence[NewJob] = (),
        log: str | None = None,
    ) -> Op[ProgressResult]:
        """Record a progress report and renew the lease. If the job reached its target, settle it.

        `extend` names a longer lease from now on. Neither this report nor a later renewal shortens
        it. Raises LeaseLost if the lease is lost or expired. When the job is settled, `also` is
        enqueued and `log` is stored.
        """
        for key in items or ():
            payload.check_key(key, "an item's key")
        counts = {"done": done, "total": total, "message": message}
        op = self._progress(
            lease if extend is None else lease._replace(ttl=max(lease.ttl, extend)),
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
        reported = yield from op
        if reported.reached:
            reached = Settlement(State.COMPLETED, AttemptOutcome.COMPLETED, reason="target_reached")
            yield from self.settlement.settle_within(lease, reached, also=also, log=log)
        return reported

    def guard(self, lease: Lease) -> Op[None]:
        """Fence a caller's transaction until it commits, without ending the job."""
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
        """End expired leases above a floor, except those the caller still holds (`kept`)."""
        return self._with_partition_fallback(
            lambda day: self._rescue(day, floor=floor, count=count, queues=None, kept=kept)
        )

    def overdue(self, older_than: timedelta, *, count: int = 10) -> Op[Sequence[StuckLease]]:
        """Return leases that expired longer ago than this, and what is blocking their rescue."""
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
        before_at: datetime | None = None,
    ) -> Op[RescueResult]:
        """Rescue leases in one statement.

        In a longer transaction, pass the time just before it began as `before_at`.
        """
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
            before_at=before_at,
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
                shown_meta(row["meta"]),
            )
            for row in rows
            if row["id"] is not None
        ]
        return RescueResult(jobs, rows[0]["found"], rows[0]["now"])


def _timed(within: timedelta | None, op: Op[T]) -> Op[T]:
    """Run with a different statement timeout.

    None removes the timeout, because a scan from zero may be slow.
    """
    yield RawSql(f"SET LOCAL statement_timeout = {(within or timedelta(0)) // _MILLISECOND}")
    return (yield from op)


def _claimed(row: tuple[Any, ...], worker: WorkerId) -> ClaimedJob | UnreadableClaim:
    """Read a claimed job by position. Reading by name took up a third of a worker's time."""
    (
        job_id, token, queue, task, key, args, priority, attempt, max_attempts, losses,
        run_at, created_at, claimed_at, expires_at, cursor, progress, items, meta,
        lost, returned, _now, _found, _unread,
    ) = row  # fmt: skip
    # Truncate to milliseconds, because the statement reads the clock once for each end of the
    # lease.
    ttl = expires_at - claimed_at
    ttl = timedelta(ttl.days, ttl.seconds, ttl.microseconds // 1000 * 1000)
    lease = Lease(job_id, token, worker, ttl)
    if why := job_problem(args, meta, cursor, progress, run_at, created_at):
        return UnreadableClaim(lease, queue, task, why)
    # A fresh job has no array and needs no extra statement. Only jobs that were lost before, or
    # that fail on loss, must be confirmed.
    worker_losses, deaths, suspect, max_losses = lost or _NEVER_LOST
    job = JobRow(
        job_id, State.RUNNING, queue, task, args, priority, attempt, max_attempts, losses, token,
        run_at, created_at, key, False, False, worker, claimed_at, expires_at,
        None, None, None, cursor, progress, items, meta, worker_losses, deaths, bool(suspect),
    )  # fmt: skip
    confirm = deaths > 0 or max_losses == 0
    return ClaimedJob(job, lease, returned, confirm)


def _lanes(lanes: Sequence[Lane]) -> dict[str, object]:
    """Return lanes as parameter arrays, by priority, with returned jobs first in each lane."""
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
