"""Settling: how running periods end. One bad row never holds up its neighbours."""

from collections.abc import Sequence
from datetime import date

from tenure._model.job import State
from tenure._model.lease import Lease, Settled
from tenure._model.lease import Settling as Answer
from tenure._model.outcome import Ended, Ending, Settlement
from tenure._rules.storable import evidence, storable, unstorable
from tenure._store.port import Op, Rows, atomically
from tenure._store.postgres.base import Base
from tenure._store.postgres.literals import Jsonb
from tenure.errors import LeaseLost, QueryFailed

_TRIES = 5
_REFUSING = frozenset({Ending.LOST, Ending.REVOKED})


class Settling(Base):
    """The part of the store that ends running periods by their whole lease."""

    def settle(self, ended: Sequence[Ended]) -> Op[Sequence[Settled]]:
        """End running periods; answers in the order asked. Sending the same again is harmless."""
        first = {e.lease: e for e in reversed(ended)}
        fit = sorted(map(storable, first.values()), key=lambda e: _name(e.lease))
        answers: dict[Lease, Settled] = {}
        yield from self._settle_batch(fit, answers)
        if rest := [e for e in fit if e.lease not in answers]:
            answers.update((yield from self._repeat(rest)))
        again = Settled(Answer.REPEATED)
        return [answers[e.lease] if e is first[e.lease] else again for e in ended]

    def _settle_batch(self, batch: Sequence[Ended], answers: dict[Lease, Settled]) -> Op[None]:
        """Settle a batch; halve it while a value in it is refused, until that row stands alone."""
        try:
            busy = yield from self._settle_once(batch, answers)
        except QueryFailed as error:
            if not error.is_data_error:
                raise
            if len(batch) == 1:
                if batch[0].settlement.reason == "unstorable":
                    raise
                yield from self._settle_batch([unstorable(batch[0], str(error))], answers)
                return
            middle = len(batch) // 2
            yield from self._settle_batch(batch[:middle], answers)
            yield from self._settle_batch(batch[middle:], answers)
            return
        # A caller's transaction has the row of this job's key. Its neighbours are settled;
        # this one waits for that transaction by itself.
        for ended in busy:
            if settled := (yield from atomically(self._settle_one(ended))):
                answers[ended.lease] = settled

    def _settle_once(
        self, batch: Sequence[Ended], answers: dict[Lease, Settled]
    ) -> Op[list[Ended]]:
        """Send a batch once; answers with what waits for a key.

        Completions go by the short statement first; what it leaves, and all else, goes by
        the whole one.
        """
        if completed := [e for e in batch if e.settlement.state is State.COMPLETED]:
            rows = yield from self._again("complete", _completions(completed))
            by_name = {_name(e.lease): e.lease for e in completed}
            for row in rows:
                lease = by_name[row["id"], row["token"]]
                answers[lease] = Settled(Answer.SETTLED, State.COMPLETED, row["late"])
        rest = [e for e in batch if e.lease not in answers]
        if not rest:
            return []
        rows = yield from self._again("settle", _endings(rest))
        return _read(rest, rows, answers)

    def _again(self, name: str, params: dict[str, object]) -> Op[Rows]:
        """Send a statement that files, again if it lost a deadlock."""

        def send(day: date | None) -> Op[Rows]:
            return self._send(name, filed_on=day, **params)

        for _ in range(_TRIES - 1):
            try:
                return (yield from self._filed(send))
            except QueryFailed as error:
                if not error.is_conflict:
                    raise
        return (yield from self._filed(send))

    def _repeat(self, rest: Sequence[Ended]) -> Op[dict[Lease, Settled]]:
        """Ask, in a new snapshot, how the running periods ended that a settle did not find."""
        rows = yield self._query(
            "repeat",
            ids=[e.lease.job_id for e in rest],
            tokens=[e.lease.token for e in rest],
            owners=[e.lease.claimed_by for e in rest],
            refused=[evidence(e) for e in rest],
        )
        outcomes = {(row["id"], row["token"]): Ending(row["outcome"]) for row in rows}
        answers = {}
        for ended in rest:
            outcome = outcomes.get(_name(ended.lease))
            refused = outcome is None or outcome in _REFUSING
            answers[ended.lease] = Settled(Answer.REFUSED if refused else Answer.REPEATED)
        return answers

    def check(self, lease: Lease) -> Op[None]:
        """LeaseLost unless the lease is still the job's. No lock."""
        held, _ = yield from self._check(lease)
        if not held:
            raise _lost(lease)

    def _check(self, lease: Lease) -> Op[tuple[bool, date]]:
        rows = yield self._query(
            "check_lease", id=lease.job_id, token=lease.token, owner=lease.claimed_by
        )
        return rows[0]["held"], rows[0]["filed_on"]

    def settle_within(self, lease: Lease, settlement: Settlement) -> Op[None]:
        """End one running period as the last statements of a caller's transaction."""
        if (yield from self._settle_one(storable(Ended(lease, settlement)))) is None:
            raise _lost(lease)

    def _settle_one(self, ended: Ended) -> Op[Settled | None]:
        """Settle one lease within a transaction, which an error would end: so the day is asked
        for first, and a key that is locked is waited for. None if the lease is lost."""
        held, day = yield from self._check(ended.lease)
        if not held:
            return None
        for _ in range(2):
            answers: dict[Lease, Settled] = {}
            rows = yield self._query("settle", filed_on=day, **_endings([ended]))
            if not _read([ended], rows, answers):
                return answers.get(ended.lease)
            yield self._query("await_key", task=rows[0]["task"], key=rows[0]["key"])
        raise AssertionError("a key that this transaction has locked was skipped as locked")


def _lost(lease: Lease) -> LeaseLost:
    return LeaseLost(f"job {lease.job_id}: the lease is lost; roll back and stop")


def _read(batch: Sequence[Ended], rows: Rows, answers: dict[Lease, Settled]) -> list[Ended]:
    """Note the answers in these rows; what is left over waits for a key."""
    by_name = {_name(e.lease): e for e in batch}
    busy = []
    for row in rows:
        ended = by_name[row["id"], row["token"]]
        if row["state"] is None:
            busy.append(ended)
        else:
            answers[ended.lease] = Settled(Answer.SETTLED, State(row["state"]), row["late"])
    return busy


def _name(lease: Lease) -> tuple[int, int]:
    """What names a running period among all of them."""
    return lease.job_id, lease.token


def _completions(batch: Sequence[Ended]) -> dict[str, object]:
    """A batch of completions as the parameter arrays of complete.sql."""
    said = [e.settlement for e in batch]
    return {
        "ids": [e.lease.job_id for e in batch],
        "tokens": [e.lease.token for e in batch],
        "owners": [e.lease.claimed_by for e in batch],
        "reasons": [s.reason for s in said],
        "results": [None if s.result is None else Jsonb(s.result) for s in said],
        "logs": [e.log for e in batch],
    }


def _endings(batch: Sequence[Ended]) -> dict[str, object]:
    """A batch of endings as the parameter arrays of settle.sql."""
    said = [e.settlement for e in batch]
    errors = [s.error for s in said]
    return _completions(batch) | {
        "states": [s.state for s in said],
        "outcomes": [s.ending for s in said],
        "delays": [s.after for s in said],
        "charged": [s.charged for s in said],
        "error_types": [e and e.type for e in errors],
        "error_messages": [e and e.message for e in errors],
        "error_traces": [e and e.trace for e in errors],
        "error_signatures": [e and e.signature for e in errors],
    }
