"""A small model of the store: what the lease protocol says should be there, in plain Python.

It shares no code with the store. It knows no locks and no lanes, only the rules.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime
    from uuid import UUID

FIRST_TOKEN = 1 << 40  # the first claim on timeline 1
LEASE = timedelta(seconds=30)
# Lower than the store's own, so that a hundred steps reach them.
MAX_WORKER_LOSSES = 4
MAX_DEATHS = 6
_ENDINGS = {
    "succeed": "completed",
    "fail": "failed",
    "time out": "timed_out",
    "give up": "failed",
    "snooze": "snoozed",
    "release": "released",
    "release, begun": "released",
    "own death": "lost",
    "shared death": "lost",
    "cancel": "cancelled",
}


@dataclass
class Job:
    """A job that is queued, running, or among the dead letters."""

    id: int
    queue: str
    priority: int
    run_at: datetime
    max_attempts: int
    key: str | None
    max_losses: int
    state: str = "queued"
    attempt: int = 0
    losses: int = 0
    worker_losses: int = 0
    deaths: int = 0
    suspect: bool = False
    begun: bool = False
    cursor: int | None = None
    items: set[str] = field(default_factory=set)
    token: int = 0
    held: bool = False
    returned: bool = False
    cancelled: bool = False
    owner: UUID | None = None
    expires: datetime | None = None

    @property
    def is_poison(self) -> bool:
        return (
            self.losses >= self.max_losses
            or self.worker_losses >= MAX_WORKER_LOSSES
            or self.deaths >= MAX_DEATHS
        )

    def give_back(self) -> None:
        self.state, self.owner, self.expires = "queued", None, None


@dataclass
class Ended:
    """Where a job that is over lies in the archive."""

    state: str
    token: int
    attempt: int


@dataclass
class Model:
    """All that the store should hold, and what it must have answered."""

    now: datetime
    jobs: dict[int, Job] = field(default_factory=dict)
    archive: dict[int, Ended] = field(default_factory=dict)
    attempts: dict[tuple[int, int], str] = field(default_factory=dict)
    keys: dict[str, tuple[int, datetime | None]] = field(default_factory=dict)
    paused: set[str] = field(default_factory=set)
    limits: dict[str, int] = field(default_factory=dict)
    discarded: set[int] = field(default_factory=set)
    created: int = 0

    def enqueue(self, job: Job) -> int:
        """The id that answers: the job's own, or that of the one which holds its key."""
        if job.key is not None:
            holder, until = self.keys.get(job.key, (0, self.now))
            if until is None or until > self.now:
                return holder
            self.keys[job.key] = (job.id, None)
        self.jobs[job.id] = job
        self.created += 1
        return job.id

    def live(self, state: str) -> list[Job]:
        return [job for job in self.jobs.values() if job.state == state]

    def claimable(self, queues: list[str], count: int, suspects: int) -> list[Job]:
        """What a claim must take, in order: by priority, what was given back first, queues in
        the order asked, then time due and age; a suspect alone, and none that took down as many
        workers as `suspects`; never above a limit."""
        order = {queue: place for place, queue in enumerate(queues)}
        due = sorted(
            (
                job
                for job in self.live("queued")
                if job.queue in order
                and not job.held
                and job.run_at <= self.now
                and not self.paused & {job.queue, "*"}
                and not (job.suspect and job.worker_losses >= suspects)
            ),
            key=lambda j: (-j.priority, not j.returned, order[j.queue], j.run_at, j.id),
        )
        room = {q: w - self._running(q) for q, w in self.limits.items()}
        taken: list[Job] = []
        for job in due:
            limits = [q for q in (job.queue, "*") if q in room]
            if len(taken) < count and all(room[q] > 0 for q in limits):
                taken.append(job)
                for q in limits:
                    room[q] -= 1
        if taken and taken[0].suspect:
            return taken[:1]
        return [job for job in taken if not job.suspect]

    def _running(self, queue: str) -> int:
        return sum(1 for job in self.live("running") if queue in (job.queue, "*"))

    def claim(self, job: Job, owner: UUID) -> None:
        job.state, job.owner, job.returned = "running", owner, False
        job.token = max(job.token + 1, FIRST_TOKEN)
        job.attempt += 1
        job.expires = self.now + LEASE
        job.begun = False

    def holder(self, job_id: int, token: int, owner: UUID) -> Job | None:
        """The job, if this whole lease is its lease."""
        job = self.jobs.get(job_id)
        if job and job.state == "running" and (job.token, job.owner) == (token, owner):
            return job
        return None

    def renew(self, job: Job, *, began: bool) -> bool:
        if job.expires is None or job.expires <= self.now:
            return False
        job.expires = self.now + LEASE
        job.begun = job.begun or began
        return True

    def confirm(self, job: Job, *, fail_on_loss: bool) -> bool:
        """The holder says that the job begins; from here on a loss is one."""
        confirmed = self.renew(job, began=True)
        if confirmed and fail_on_loss:
            job.max_losses = 0
        return confirmed

    def progress(self, job: Job, cursor: int | None, item: str | None) -> bool:
        """A report; a moved cursor or a new item starts both loss counters again."""
        if not self.renew(job, began=True):
            return False
        if cursor not in (None, job.cursor) or (item is not None and item not in job.items):
            job.losses = job.worker_losses = 0
        job.cursor = job.cursor if cursor is None else cursor
        job.items |= set() if item is None else {item}
        return True

    def settle(self, job: Job, how: str) -> str:
        """End a running period; answers with the state that must come of it."""
        self.attempts[job.id, job.token] = _ENDINGS[how]
        if how == "succeed":
            return self._end(job, "completed")
        if job.cancelled or how == "cancel":
            return self._end(job, "cancelled")
        if how == "give up":
            return self._fail(job)
        if how in ("fail", "time out"):
            if job.attempt >= job.max_attempts:
                return self._fail(job)
        else:
            return self._give_back(job, how)
        job.give_back()
        job.suspect = False
        job.run_at = self.now + timedelta(seconds=10)
        return "queued"

    def _give_back(self, job: Job, how: str) -> str:
        """The attempt does not count: a snooze, a release, or a process that died."""
        died = how in ("own death", "shared death")
        job.losses += how == "own death"
        job.worker_losses += how == "shared death"
        job.deaths += died
        if (died or how == "release, begun") and not job.max_losses:
            return self._fail(job)
        if died and job.is_poison:
            return self._fail(job)
        job.give_back()
        job.attempt -= 1
        if how == "snooze":
            job.run_at = self.now + timedelta(seconds=10)
            job.suspect = False
        else:
            job.returned = True
            job.suspect = job.suspect or died
        return "queued"

    def rescue(
        self, queues: set[str] | None = None, *, holder: UUID | None = None, kept: set[int]
    ) -> dict[int, str]:
        """End every lease that is over but those that its caller holds; answers with what must
        come of each."""
        return {
            job.id: self._rescue(job)
            for job in self.live("running")
            if job.expires is not None
            and job.expires <= self.now
            and (queues is None or job.queue in queues)
            and not (job.id in kept and job.owner == holder)
        }

    def _rescue(self, job: Job) -> str:
        self.attempts[job.id, job.token] = "lost"
        job.token += 1
        job.worker_losses += job.begun
        job.deaths += 1
        if job.cancelled:
            return self._end(job, "cancelled")
        if job.begun and not job.max_losses:
            return self._fail(job)
        if job.worker_losses >= MAX_WORKER_LOSSES or job.deaths >= MAX_DEATHS:
            return self._fail(job)
        job.suspect = job.suspect or (job.begun and job.worker_losses >= 2)
        job.give_back()
        job.attempt -= 1
        job.returned = True
        return "queued"

    def cancel(self, job: Job) -> str:
        if job.state == "running":
            job.cancelled = True
            return "requested"
        return self._end(job, "cancelled")

    def revoke(self, job: Job) -> None:
        self.attempts[job.id, job.token] = "revoked"
        job.token += 1
        self._end(job, "cancelled")

    def retry(self, job: Job) -> int:
        """The id of the job that has the key afterwards, or the job's own."""
        if job.key is not None:
            holder, until = self.keys[job.key]
            if until is None:
                return holder
            self.keys[job.key] = (job.id, None)
        job.give_back()
        job.token += 1
        job.attempt = job.losses = job.worker_losses = job.deaths = 0
        job.run_at, job.cancelled, job.returned, job.held = self.now, False, False, False
        job.suspect = False
        return job.id

    def discard(self, job: Job) -> None:
        del self.jobs[job.id]
        self.discarded.add(job.id)

    def _fail(self, job: Job) -> str:
        self._free(job)
        job.state, job.owner, job.expires = "failed", None, None
        return "failed"

    def _end(self, job: Job, state: str) -> str:
        self._free(job)
        self.archive[job.id] = Ended(state, job.token, job.attempt)
        del self.jobs[job.id]
        return state

    def _free(self, job: Job) -> None:
        if job.key is not None:
            self.keys[job.key] = (job.id, self.now)
