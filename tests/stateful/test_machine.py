"""The real store and the model, driven side by side through every order Hypothesis thinks of."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from support.store import A, B, install, lanes
from tenure._model.audit import By
from tenure._model.ids import JobId
from tenure._model.job import NewJob
from tenure._model.lease import RenewStatus, SettleStatus
from tenure._model.outcome import (
    Cancelled,
    Failed,
    Loss,
    Lost,
    Released,
    SettleRequest,
    Snoozed,
    Succeeded,
)
from tenure._model.results import CancelStatus, RetryStatus
from tenure._rules.lifecycle import settle
from tenure._store.postgres import leases as leases_module
from tenure._store.postgres import settlement as settling_module
from tenure._store.postgres.connections import connect
from tenure._store.postgres.sessions import Session
from tenure._store.postgres.store import PostgresStore
from tenure.errors import Error, LeaseLost
from tests.stateful.model import MAX_DEATHS, MAX_WORKER_LOSSES, Job, Model
from tests.stateful.tables import EMPTY, LOOK, seen

if TYPE_CHECKING:
    import psycopg

    from support.databases import Databases
    from tenure._model.ids import WorkerId
    from tenure._model.lease import Lease
    from tenure._model.outcome import (
        Outcome,
    )

OPERATOR = By("machine", reason="to see what happens")
QUEUES = ["a", "b"]
TEN = timedelta(seconds=10)
OUTCOMES: dict[str, Outcome] = {
    "succeed": Succeeded({"ok": True}),
    "fail": Failed(Error("ValueError", "no")),
    "time out": Failed(Error("TimedOut", "no"), timed_out=True),
    "give up": Failed(Error("ValueError", "no"), retryable=False),
    "snooze": Snoozed(TEN),
    "release": Released(),
    "release, begun": Released(begun=True),
    "own death": Lost(Loss.OWN, Error("ProcessDied", "SIGSEGV")),
    "shared death": Lost(Loss.SHARED, Error("ProcessDied", "SIGKILL")),
    "cancel": Cancelled("enough"),
}
EXAMPLES, STEPS = 250, 100


class StoreMachine(RuleBasedStateMachine):
    """Every rule acts on both and compares the answers; every invariant looks at the tables."""

    url: ClassVar[str]
    connection: ClassVar[psycopg.Connection[Any]]
    steps: ClassVar[int] = 0

    @initialize()
    def begin(self) -> None:
        self.model = Model(datetime.now(UTC).replace(microsecond=0) + timedelta(minutes=1))
        self.store = PostgresStore(clock=lambda: self.model.now)
        self.session = Session(self.connection)
        self.connection.execute(EMPTY)
        self.leases: list[Lease] = []
        self.grants: dict[int, list[tuple[datetime, datetime]]] = {}
        self.accepted: dict[int, int] = {}
        self.tokens: dict[int, int] = {}

    # What clients do

    @rule(
        queue=st.sampled_from(QUEUES),
        priority=st.sampled_from([0, 5, 9]),
        attempts=st.integers(1, 3),
        losses=st.sampled_from([3, 3, 2, 0]),
        key=st.sampled_from([None, None, "k1", "k2"]),
        delay=st.sampled_from([0, 0, 30]),
    )
    def enqueue(
        self, queue: str, priority: int, attempts: int, losses: int, key: str | None, delay: int
    ) -> None:
        wait = timedelta(seconds=delay)
        new = NewJob(
            *("t", queue, {}, priority),
            delay=wait,
            key=key,
            max_attempts=attempts,
            max_losses=losses,
        )
        [answer] = self.session.run(self.store.jobs.enqueue([new], wake=False))
        job = Job(answer.id, queue, priority, self.model.now + wait, attempts, key, losses)
        assert answer.created == (answer.id not in self._known())
        assert self.model.enqueue(job) == answer.id

    @rule(
        worker=st.sampled_from([A, B]),
        count=st.integers(1, 3),
        queues=st.permutations(QUEUES),
        suspects=st.sampled_from([0, 2, MAX_WORKER_LOSSES, MAX_WORKER_LOSSES]),
        keeps=st.booleans(),
    )
    def claim(
        self, worker: WorkerId, count: int, queues: list[str], suspects: int, *, keeps: bool
    ) -> None:
        kept = self._kept(worker) if keeps else []
        if self.model.limits.keys() & {*queues, "*"}:
            self.model.rescue(
                None if "*" in self.model.limits else set(queues),
                holder=worker,
                kept={lease.job_id for lease in kept},
            )
        expected = self.model.claimable(queues, count, suspects)
        claims = self.session.run(
            self.store.leases.claim(
                lanes(*queues), count=count, worker=worker, suspects=suspects, kept=kept
            )
        )
        assert [c.job.id for c in claims.jobs] == [job.id for job in expected]
        for job, claimed in zip(expected, claims.jobs, strict=True):
            self.model.claim(job, worker)
            assert (claimed.job.token, claimed.job.attempt) == (job.token, job.attempt)
            assert claimed.confirm == (job.deaths > 0 or job.max_losses == 0)
            self.leases.append(claimed.lease)
            end = claimed.job.lease_expires_at
            assert end is not None
            self.grants.setdefault(job.id, []).append((self.model.now, end))

    @precondition(lambda self: self.leases)
    @rule(data=st.data(), began=st.booleans())
    def renew(self, data: st.DataObject, *, began: bool) -> None:
        lease = self._lease(data)
        [answer] = self.session.run(self.store.leases.renew([lease], began=[began]))
        job = self.model.holder(lease.job_id, lease.token, lease.claimed_by)
        renewed = job is not None and self.model.renew(job, began=began)
        assert (answer.answer is RenewStatus.RENEWED) == renewed
        if renewed and job is not None:
            assert answer.cancel_requested == job.cancelled
            self._extend(job)

    @precondition(lambda self: self.leases)
    @rule(data=st.data(), fails=st.sampled_from([False, False, False, True]))
    def confirm(self, data: st.DataObject, *, fails: bool) -> None:
        lease = self._lease(data)
        [answer] = self.session.run(self.store.leases.confirm([lease], fail_on_loss=[fails]))
        job = self.model.holder(lease.job_id, lease.token, lease.claimed_by)
        confirmed = job is not None and self.model.confirm(job, fail_on_loss=fails)
        assert answer == confirmed
        if confirmed and job is not None:
            self._extend(job)

    @precondition(lambda self: self.leases)
    @rule(
        data=st.data(),
        cursor=st.sampled_from([None, 1, 2]),
        item=st.sampled_from([None, None, "x", "y"]),
    )
    def progress(self, data: st.DataObject, cursor: int | None, item: str | None) -> None:
        lease = self._lease(data)
        job = self.model.holder(lease.job_id, lease.token, lease.claimed_by)
        kept = job is not None and self.model.progress(job, cursor, item)
        report = self.store.leases.progress(
            lease, cursor=cursor, items=None if item is None else {item: 1}
        )
        try:
            reported = self.session.run(report)
        except LeaseLost:
            assert not kept
            return
        assert kept
        assert job is not None
        assert reported.items == len(job.items)
        self._extend(job)

    @precondition(lambda self: self.leases)
    @rule(data=st.data(), how=st.sampled_from(list(OUTCOMES)))
    def settle(self, data: st.DataObject, how: str) -> None:
        lease = self._lease(data)
        ended = SettleRequest(lease, settle(OUTCOMES[how], attempt=1, limit=9, backoff=TEN))
        [answer] = self.session.run(self.store.settlement.settle([ended]))
        job = self.model.holder(lease.job_id, lease.token, lease.claimed_by)
        if job is None:
            before = self.model.attempts[lease.job_id, lease.token]
            same = before == ended.settlement.ending
            assert answer.answer is (SettleStatus.REPEATED if same else SettleStatus.REFUSED)
            assert answer.ending == before
            return
        self._close(lease)
        assert answer.answer is SettleStatus.SETTLED
        assert answer.late == (job.expires is not None and job.expires <= self.model.now)
        assert answer.state == self.model.settle(job, how)
        if answer.state == "completed":
            self.accepted[lease.job_id] = self.accepted.get(lease.job_id, 0) + 1

    @rule(seconds=st.sampled_from([1, 9, 31]))
    def advance(self, seconds: int) -> None:
        self.model.now += timedelta(seconds=seconds)

    @rule(keeps=st.sampled_from([None, None, A, B]))
    def rescue(self, keeps: WorkerId | None) -> None:
        kept = [] if keeps is None else self._kept(keeps)
        rescues = self.session.run(self.store.leases.rescue(kept=kept))
        expected = self.model.rescue(holder=keeps, kept={lease.job_id for lease in kept})
        assert {r.job_id: r.state for r in rescues.jobs} == expected

    # What operators do

    @precondition(lambda self: self.model.jobs)
    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        job = self._job(data)
        [answer] = self.session.run(self.store.job_commands.cancel([JobId(job.id)], OPERATOR))
        if job.state == "failed":
            assert answer is CancelStatus.NOT_LIVE
        else:
            assert answer == self.model.cancel(job)

    @precondition(lambda self: self.model.jobs)
    @rule(data=st.data())
    def revoke(self, data: st.DataObject) -> None:
        job = self._job(data)
        [answer] = self.session.run(self.store.job_commands.revoke([JobId(job.id)], OPERATOR))
        assert answer == (job.state == "running")
        if answer:
            self.grants[job.id][-1] = (self.grants[job.id][-1][0], self.model.now)
            self.model.revoke(job)

    @precondition(lambda self: self.model.jobs)
    @rule(data=st.data(), held=st.booleans())
    def hold_or_resume(self, data: st.DataObject, *, held: bool) -> None:
        job = self._job(data)
        verb = self.store.job_commands.hold if held else self.store.job_commands.resume
        [answer] = self.session.run(verb([JobId(job.id)], OPERATOR))
        assert answer == (job.state == "queued" if held else job.held)
        if answer:
            job.held = held
            job.returned = job.returned or not held

    @precondition(lambda self: self.model.live("failed"))
    @rule(data=st.data())
    def retry(self, data: st.DataObject) -> None:
        job = data.draw(st.sampled_from(self.model.live("failed")))
        [answer] = self.session.run(self.store.job_commands.retry([JobId(job.id)], OPERATOR))
        holder = self.model.retry(job)
        assert (answer.answer is RetryStatus.RETRIED) == (holder == job.id)
        assert answer.holder in (None, holder)

    @precondition(lambda self: self.model.live("failed"))
    @rule(data=st.data())
    def discard(self, data: st.DataObject) -> None:
        job = data.draw(st.sampled_from(self.model.live("failed")))
        assert self.session.run(self.store.job_commands.discard([JobId(job.id)], OPERATOR)) == [
            True
        ]
        self.model.discard(job)

    @rule(queue=st.sampled_from([*QUEUES, "*"]), paused=st.booleans())
    def pause_or_resume(self, queue: str, *, paused: bool) -> None:
        verb = self.store.queues.pause if paused else self.store.queues.resume
        self.session.run(verb(queue, OPERATOR))
        (self.model.paused.add if paused else self.model.paused.discard)(queue)

    @rule(queue=st.sampled_from([*QUEUES, "*"]), limit=st.sampled_from([None, None, 0, 1, 2]))
    def limit(self, queue: str, limit: int | None) -> None:
        self.session.run(self.store.queues.limit(queue, limit, OPERATOR))
        self.model.limits.pop(queue, None)
        if limit is not None:
            self.model.limits[queue] = limit

    # What must always hold

    @invariant()
    def the_tables_are_what_the_model_says(self) -> None:
        type(self).steps += 1
        row = self.connection.execute(LOOK).fetchone()
        assert row is not None
        live, failed, archive, attempts, histories = (part or [] for part in row)
        jobs = sorted(self.model.jobs.values(), key=lambda j: j.id)
        assert live + failed == [
            seen(j) for s in (("queued", "running"), ("failed",)) for j in jobs if j.state in s
        ]
        assert archive == [
            [i, e.state, e.token, e.attempt] for i, e in sorted(self.model.archive.items())
        ]
        assert attempts == [[*k, v] for k, v in sorted(self.model.attempts.items())]
        ends = sorted(self.model.attempts.items())
        assert histories == [
            [job_id, [[token, end] for (job, token), end in ends if job == job_id][-21:]]
            for job_id, *_ in failed
        ]
        self._i2_i8_i9_i10(live, failed, archive, attempts)

    def _i2_i8_i9_i10(
        self, live: list[Any], failed: list[Any], archive: list[Any], attempts: list[Any]
    ) -> None:
        assert all(count == 1 for count in self.accepted.values()), "I2: one accepted result"
        ends = [t[0] for t in attempts if t[2] == "completed"]
        assert len(ends) == len(set(ends)), "I2: one completed attempt per job"
        for job_id, _, token, *_ in live + failed + archive:
            assert token >= self.tokens.get(job_id, 0), "I8: tokens only grow"
            self.tokens[job_id] = token
        for job_id, _, _, attempt, losses, worker_losses, deaths, *_ in live + failed:
            assert 0 <= attempt <= self.model.jobs[job_id].max_attempts, "I9: attempts"
            assert losses <= 3, "I9: losses"
            assert worker_losses <= MAX_WORKER_LOSSES, "I9: worker losses"
            assert max(losses, worker_losses) <= deaths <= MAX_DEATHS, "I9: deaths"
        places = [row[0] for row in live + failed + archive] + list(self.model.discarded)
        assert len(places) == len(set(places)) == self.model.created, "I10: conservation"

    @invariant()
    def no_two_leases_are_valid_at_once(self) -> None:
        for periods in self.grants.values():
            for (_, end), (start, _) in pairwise(periods):
                assert end <= start, "I3: a lease began before the last one ended"

    def _known(self) -> set[int]:
        return self.model.jobs.keys() | self.model.archive.keys() | self.model.discarded

    def _lease(self, data: st.DataObject) -> Lease:
        return data.draw(st.sampled_from(self.leases[-8:]))

    def _kept(self, worker: WorkerId) -> list[Lease]:
        """What a worker may believe that it holds: its newest leases, some of them over."""
        return [lease for lease in self.leases[-4:] if lease.claimed_by == worker]

    def _extend(self, job: Job) -> None:
        """The last grant of this job ends when the model says now, for I3."""
        assert job.expires is not None
        began, _ = self.grants[job.id][-1]
        self.grants[job.id][-1] = (began, job.expires)

    def _job(self, data: st.DataObject) -> Job:
        return data.draw(st.sampled_from(list(self.model.jobs.values())))

    def _close(self, lease: Lease) -> None:
        """A lease that is settled is over from now on, for I3."""
        periods = self.grants[lease.job_id]
        periods[-1] = (periods[-1][0], min(periods[-1][1], self.model.now))


@pytest.mark.timeout(600)
def test_the_store_does_what_the_model_says(
    databases: Databases, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Shows R1, R2, R4, R5, R6, R9, R10, R11, R12, R13, R15, R16, R17.

    More than 20,000 steps in all, the invariants I2, I3, I8, I9 and I10 after each.
    """
    StoreMachine.url = databases.create(databases.template("tenure", install))
    StoreMachine.steps = 0
    for module in (leases_module, settling_module):
        monkeypatch.setattr(module, "MAX_WORKER_LOSSES", MAX_WORKER_LOSSES)
        monkeypatch.setattr(module, "MAX_DEATHS", MAX_DEATHS)
    with connect(StoreMachine.url, name="machine") as connection:
        StoreMachine.connection = connection
        run_state_machine_as_test(
            StoreMachine,
            settings=settings(
                max_examples=EXAMPLES,
                stateful_step_count=STEPS,
                deadline=None,
                suppress_health_check=list(HealthCheck),
            ),
        )
    databases.drop(StoreMachine.url)
    assert StoreMachine.steps >= 20_000
