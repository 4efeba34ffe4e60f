"""What the checker is given of one job, and what it says about it.

`Event.what` and its answers:

- enqueue: "ok", or "unknown" where the client saw an error or nothing: the job may or may not
  exist. Several enqueues of one key may belong to one job (retries).
- began: the handler runs under this token; an instant.
- effect: an effect outside the transaction; an instant.
- commit: leaving `job.transaction()`: "ok", "refused" (`LeaseLost`) or "unknown". A handler that is
  killed before it can tell the answer has an unknown commit too: it must say so beforehand.
- returned: the handler returned. Whether the settle after it was accepted is not seen: no end.
- raised: the handler raised, a failure is offered; no end.
- cancel: "ended" (it was queued and is cancelled now), "requested" (it was running), "nothing"
  (it had ended) or "unknown", also where the client did not live to see the answer.
- seen: a client's read. The answer is the state; the token as read, 0 if it was not read.

The outcomes of `Final.attempts` are those of the attempt rows, but for a loss, which has the name
of its kind:

- expired: the lease ran out and no holder gave it back: a worker loss.
- unbegun: the same, of a claim whose handler is not known to have begun: only a death.
- excused: the lease ran out because the server itself started again: nothing is counted.
- crashed: a process that it shared died, as the parent saw: a worker loss.
- died: its own process died, as the parent saw: a loss.
- stood_still: killed by the parent past a deadline: a loss if it was alone there, or a worker loss.
- lost: by the rule of the last release: charged as an attempt, and a loss unless it was excused.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that a client or a handler did with a job, from its beginning to the answer."""

    what: str
    since: float  # seconds, the machine's monotonic clock
    until: float  # inf where no answer was seen
    token: int = 0  # of the lease in whose name it was done; 0 for clients
    answer: str = ""


@dataclass(frozen=True, slots=True)
class Final:
    """What the store says of a job after the run, beside what the ledgers say."""

    state: str  # completed, failed, cancelled, queued, running, or "gone"
    token: int
    attempts: tuple[tuple[int, str], ...]  # (token, outcome) in order of tokens
    result: int | None  # the token that the accepted result carries, None if it carries none
    entries: tuple[int, ...]  # tokens of rows in the ledger written in the job's transaction
    writes: bool = False  # whether the handler writes the ledger: then completed has one entry
    reason: str | None = None  # why it failed


@dataclass(frozen=True, slots=True)
class JobHistory:
    """Everything that is known of one job, within one life.

    The first two caps are the job's own. One whose `max_losses` is 0 fails on its first loss. Of a
    job whose result is `unstorable` a period may have failed though its handler returned.
    """

    job_id: int
    events: tuple[Event, ...]
    final: Final
    max_attempts: int = 50
    max_losses: int = 50
    max_worker_losses: int = 10
    max_deaths: int = 100
    unstorable: bool = False


@dataclass(frozen=True, slots=True)
class Violation:
    """An invariant of the proof that a history breaks, in one sentence with the tokens."""

    invariant: str  # I1 to I10
    job_id: int
    what: str

    def __str__(self) -> str:
        return f"job {self.job_id}: {self.what}"
