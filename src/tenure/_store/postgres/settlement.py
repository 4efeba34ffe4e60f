"""Settle attempts. A bad or locked row never holds up the others."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import TypeVar

from tenure._model.attempt import AttemptOutcome
from tenure._model.job import NewJob, State
from tenure._model.lease import Lease, SettleResult, SettleStatus
from tenure._model.outcome import COMPLETED, FinalReport, Settlement, SettleRequest
from tenure._rules.lifecycle import MAX_DEATHS, MAX_WORKER_LOSSES
from tenure._rules.payload import encode
from tenure._rules.sanitize import as_unstorable, refused_result, sanitized
from tenure._store.postgres.jobs import JobQueries
from tenure._store.postgres.rows import (
    Name,
    check_isolation,
    name_arrays,
    name_of,
    row_name,
)
from tenure._store.postgres.statements import Jsonb, QueryBase
from tenure._store.steps import Op, RawSql, Rows, atomically
from tenure.errors import LeaseLost, QueryFailed

T = TypeVar("T")
_SOON = RawSql("SET LOCAL lock_timeout = '100ms'")
_IN_TIME = SettleResult(SettleStatus.SETTLED, State.COMPLETED)
_LATE = SettleResult(SettleStatus.SETTLED, State.COMPLETED, late=True)


@dataclass(slots=True)
class _Batch:
    """Endings to settle, and the results so far."""

    answers: dict[Name, SettleResult] = field(default_factory=dict)

    def unanswered(self, ended: Sequence[SettleRequest]) -> list[SettleRequest]:
        return [e for e in ended if name_of(e.lease) not in self.answers]

    def read(self, ended: Sequence[SettleRequest], rows: Rows) -> list[SettleRequest]:
        """Record the results in these rows from settle.sql.

        Return the settlements still waiting for a key.
        """
        by_name = {name_of(e.lease): e for e in ended}
        busy = []
        for row in rows:
            if row["state"] is None:
                busy.append(by_name[row_name(row)])
            else:
                state = State(row["state"])
                self.answers[row_name(row)] = SettleResult(
                    SettleStatus.SETTLED, state, row["late"], reason=row["reason"]
                )
        return busy


@dataclass(eq=False)
class SettlementQueries(QueryBase):
    jobs: JobQueries

    def settle(self, ended: Sequence[SettleRequest]) -> Op[Sequence[SettleResult]]:
        """End attempts. Results are in the order of the request. Calling it twice is harmless."""
        names = [name_of(e.lease) for e in ended]
        first = dict(zip(reversed(names), reversed(ended), strict=True))
        fit = sorted(map(sanitized, first.values()), key=lambda e: e.lease.job_id)
        batch = _Batch()
        if plain := [e for e in fit if e.settlement.report is None]:
            yield from self._settle_batch(plain, batch)
        for one in fit:
            if one.settlement.report is not None:
                yield from self._settle_reported(one, batch)
        if rest := batch.unanswered(fit):
            batch.answers |= yield from self._repeat(rest)
        again = SettleResult(SettleStatus.REPEATED)
        return [
            batch.answers[name] if e is first[name] else again
            for name, e in zip(names, ended, strict=True)
        ]

    def complete(self, leases: Sequence[Lease]) -> Op[Sequence[Lease]]:
        """Complete jobs without a key, result or log in one statement.

        Return the leases it didn't settle.
        """
        batch = sorted(leases, key=lambda lease: lease.job_id)
        nothing = [None] * len(batch)
        reasons = [COMPLETED.reason] * len(batch)
        params = name_arrays(batch) | {"reasons": reasons, "results": nothing, "logs": nothing}
        try:
            rows = yield from self._file("complete", params, hurried=False)
        except QueryFailed as error:
            if not (error.is_data_error or error.is_conflict):
                raise
            return batch
        if len(rows) == len(batch):
            return ()
        ended = {place for place, *_ in rows}
        return [lease for place, lease in enumerate(batch, start=1) if place not in ended]

    def _settle_batch(
        self, ended: Sequence[SettleRequest], batch: _Batch, *, hurried: bool = False
    ) -> Op[None]:
        """Settle a batch.

        If a row is rejected or locked, keep halving the batch until that row is isolated.
        """
        try:
            busy = yield from self._settle_once(ended, batch, hurried=hurried)
        except QueryFailed as error:
            if not (error.is_data_error or error.is_conflict):
                raise
            if len(ended) > 1:
                middle = len(ended) // 2
                for half in (ended[:middle], ended[middle:]):
                    if rest := batch.unanswered(half):
                        yield from self._settle_batch(rest, batch, hurried=error.is_conflict)
                return
            [one] = ended
            if error.is_conflict:
                batch.answers[name_of(one.lease)] = SettleResult(SettleStatus.BUSY)
                return
            if one.settlement.reason == "unstorable":
                raise
            yield from self._settle_batch([as_unstorable(one, str(error))], batch)
            return
        # Callers' transactions have locked these jobs' keys. The other jobs are settled. We let one
        # job wait briefly for its key, because a busy key might never be free when we try. It
        # doesn't wait longer, because its row can't be renewed in the meantime, and later endings
        # wait behind it.
        for one in busy[1:]:
            batch.answers[name_of(one.lease)] = SettleResult(SettleStatus.BUSY)
        for one in busy[:1]:
            try:
                settled = yield from atomically(_hurried(self._settle_one(one)))
            except QueryFailed as error:
                if not error.is_conflict:
                    raise
                settled = SettleResult(SettleStatus.BUSY)
            if settled:
                batch.answers[name_of(one.lease)] = settled

    def _settle_reported(self, one: SettleRequest, batch: _Batch) -> Op[None]:
        """Complete a job and store its last report, in a transaction of its own."""
        try:
            settled = yield from atomically(_hurried(self._settle_one(one)))
        except QueryFailed as error:
            if error.is_data_error:
                yield from self._settle_batch([as_unstorable(one, str(error))], batch)
                return
            if not error.is_conflict:
                raise
            settled = SettleResult(SettleStatus.BUSY)
        if settled:
            batch.answers[name_of(one.lease)] = settled

    def _settle_once(
        self, ended: Sequence[SettleRequest], batch: _Batch, *, hurried: bool
    ) -> Op[list[SettleRequest]]:
        """Send a batch once, completions first.

        Return the settlements that are waiting for a key.
        """
        if completed := [e for e in ended if e.settlement.state is State.COMPLETED]:
            rows = yield from self._file("complete", _completions(completed), hurried=hurried)
            for place, late, _ in rows:
                name = name_of(completed[place - 1].lease)
                batch.answers[name] = _LATE if late else _IN_TIME
            if len(rows) == len(ended):
                return []
        rest = batch.unanswered(ended)
        if not rest:
            return []
        rows = yield from self._file("settle", _endings(rest), hurried=hurried)
        return batch.read(rest, rows)

    def _file(self, name: str, params: dict[str, object], *, hurried: bool) -> Op[Rows]:
        """Send a statement that writes history. If `hurried`, give up quickly on a lock."""

        def send(day: date | None) -> Op[Rows]:
            op = self._send(
                name, tuples=name == "complete", filed_on=day, channel=self.ended_channel, **params
            )
            return atomically(_hurried(op)) if hurried else op

        return (yield from self._with_partition_fallback(send))

    def _repeat(self, rest: Sequence[SettleRequest]) -> Op[dict[Name, SettleResult]]:
        """Look up, in a new snapshot, the outcomes of attempts that a settle didn't find."""
        rows = yield self._query(
            "settle_again",
            **name_arrays([e.lease for e in rest]),
            outcomes=[e.settlement.ending for e in rest],
            refused_results=[refused_result(e) for e in rest],
        )
        outcomes = {row_name(row): AttemptOutcome(row["outcome"]) for row in rows}
        answers = {}
        for ended in rest:
            outcome = outcomes.get(name_of(ended.lease))
            same = outcome is ended.settlement.ending
            answer = SettleStatus.REPEATED if same else SettleStatus.REFUSED
            answers[name_of(ended.lease)] = SettleResult(answer, ending=outcome)
        return answers

    def check(self, lease: Lease) -> Op[None]:
        """Raise LeaseLost if the job no longer has this lease. Takes no lock."""
        held, _ = yield from self._check(lease)
        if not held:
            raise _lost(lease)

    def _check(self, lease: Lease) -> Op[tuple[bool, date]]:
        rows = yield self._query(
            "check_lease", id=lease.job_id, token=lease.token, owner=lease.claimed_by
        )
        check_isolation(rows[0])
        return rows[0]["held"], rows[0]["filed_on"]

    def settle_within(
        self,
        lease: Lease,
        settlement: Settlement,
        *,
        also: Sequence[NewJob] = (),
        log: str | None = None,
        hurried: bool = False,
    ) -> Op[None]:
        """End one attempt at the end of a caller's transaction, and enqueue the jobs in `also`.

        Raise LeaseLost if the job no longer has this lease. The caller must then roll back. The
        row stays locked until COMMIT, so the server disconnects a holder that stalls for longer
        than one lease before committing.
        """
        wait = int(lease.ttl.total_seconds() * 1000)
        yield RawSql(f"SET LOCAL idle_in_transaction_session_timeout = {wait}")
        if hurried:
            yield _SOON
        if also:
            yield from self.jobs.enqueue(also)
        if (yield from self._settle_one(sanitized(SettleRequest(lease, settlement, log)))) is None:
            raise _lost(lease)

    def _settle_one(self, ended: SettleRequest) -> Op[SettleResult | None]:
        """Settle one lease in a transaction, waiting for the job's key if it's locked.

        Its last report is stored first. Return None if the lease is lost.
        """
        held, day = yield from self._check(ended.lease)
        if not held:
            return None
        if (report := ended.settlement.report) is not None:
            yield self._within("final_report", **_report(ended.lease, report))
        for _ in range(2):
            batch = _Batch()
            rows = yield self._within(
                "settle", filed_on=day, channel=self.ended_channel, **_endings([ended])
            )
            if not batch.read([ended], rows):
                return batch.answers.get(name_of(ended.lease))
            yield self._within("await_key", task=rows[0]["task"], key=rows[0]["key"])
        raise AssertionError("a key that this transaction has locked was skipped as locked")


def _hurried(op: Op[T]) -> Op[T]:
    yield _SOON
    return (yield from op)


def _lost(lease: Lease) -> LeaseLost:
    return LeaseLost(f"job {lease.job_id}: the lease is lost; roll back and stop")


def _report(lease: Lease, report: FinalReport) -> dict[str, object]:
    items = report.items or {}
    return {
        "id": lease.job_id,
        "token": lease.token,
        "owner": lease.claimed_by,
        "cursor": None if report.cursor is None else encode(report.cursor, what="the cursor"),
        "item_keys": list(items),
        "items": [encode(item, what="the items") for item in items.values()],
    }


def _completions(batch: Sequence[SettleRequest]) -> dict[str, object]:
    settlements = [e.settlement for e in batch]
    return name_arrays([e.lease for e in batch]) | {
        "reasons": [s.reason for s in settlements],
        "results": [None if s.result is None else Jsonb(s.result) for s in settlements],
        "logs": [e.log for e in batch],
    }


def _endings(batch: Sequence[SettleRequest]) -> dict[str, object]:
    settlements = [e.settlement for e in batch]
    errors = [s.error for s in settlements]
    return _completions(batch) | {
        "states": [s.state for s in settlements],
        "outcomes": [s.ending for s in settlements],
        "delays": [s.after for s in settlements],
        "charged": [s.charged for s in settlements],
        "losses": [s.loss for s in settlements],
        "max_worker_losses": MAX_WORKER_LOSSES,
        "max_deaths": MAX_DEATHS,
        "error_types": [e and e.type for e in errors],
        "error_messages": [e and e.message for e in errors],
        "error_traces": [e and e.trace for e in errors],
        "error_signatures": [e and e.signature for e in errors],
    }
