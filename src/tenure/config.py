"""The built-in values of everything that can be set, and the factor that scales time. No I/O."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Literal, TypedDict

from tenure._model.ids import duration as duration  # noqa: PLC0414 - asked for here by all
from tenure.errors import InvalidValue

# What the loss of an attempt that had begun means: another try, or the end of the job.
OnLoss = Literal["retry", "fail"]
LONGEST_LEASE = timedelta(days=1)
# Durations are added to instants; within this, no sum leaves the calendar.
LONGEST_WAIT = timedelta(days=36_500)


@dataclass(frozen=True, slots=True, init=False)
class Backoff:
    """A failed attempt waits `min(cap, base * 2^(attempt-1))`, and up to `jitter` of it more."""

    base: timedelta
    cap: timedelta
    jitter: float

    def __init__(
        self,
        base: "float | timedelta" = timedelta(seconds=30),
        cap: "float | timedelta" = timedelta(hours=1),
        jitter: float = 0.2,
    ) -> None:
        """Durations are seconds or timedeltas."""
        if duration(base) < timedelta(0) or duration(cap) < timedelta(0) or not 0 <= jitter <= 1:
            raise InvalidValue(
                f"a backoff of base {base}, cap {cap}, jitter {jitter} cannot be: durations are "
                "not negative, and the jitter is a share from 0 to 1"
            )
        object.__setattr__(self, "base", min(duration(base), LONGEST_WAIT))
        object.__setattr__(self, "cap", min(duration(cap), LONGEST_WAIT))
        object.__setattr__(self, "jitter", jitter)


class TaskOptions(TypedDict, total=False):
    """What `@app.task` takes. An option that is omitted is left to the queue and the settings."""

    name: str | None
    aliases: Sequence[str]
    queue: str
    priority: int
    max_attempts: int | None
    max_losses: int | None
    on_loss: OnLoss
    timeout: float | timedelta | None
    lease: float | timedelta | None
    stop_within: float | timedelta | None
    backoff: Backoff | None
    give_up_on: Sequence[type[BaseException]]
    expires_in: float | timedelta | None
    process: bool
    memory: str | int | None


@dataclass(frozen=True, slots=True)
class Defaults:
    """The built-in values. A setting row, a queue row, a task and a call override them in turn."""

    lease: timedelta = timedelta(seconds=30)
    stop_within: timedelta = timedelta(seconds=2)
    margin: timedelta = timedelta(seconds=1)
    renewal_window: timedelta = timedelta(seconds=1)
    late_commit_window: timedelta = timedelta(seconds=2)
    # How long the first claim of a lane may walk over dead entries: about a million of them.
    first_claim: timedelta = timedelta(seconds=1)
    poll: timedelta = timedelta(seconds=1)
    rescue_interval: timedelta = timedelta(seconds=5)
    heartbeat_interval: timedelta = timedelta(seconds=5)
    blocked_after: timedelta = timedelta(seconds=1)
    grace: timedelta = timedelta(seconds=25)
    timeout: timedelta = timedelta(seconds=300)
    max_attempts: int = 3
    max_losses: int = 3
    backoff: Backoff = Backoff()
    keep_archive: timedelta = timedelta(days=7)
    keep_attempts: timedelta = timedelta(days=7)
    keep_failed: timedelta = timedelta(days=90)
    keep_ticks: timedelta = timedelta(days=30)
    keep_rollups: timedelta = timedelta(days=30)
    keep_workers: timedelta = timedelta(days=7)
    keep_operations: timedelta = timedelta(days=30)
    keep_answers: timedelta = timedelta(days=1)

    @property
    def forced_lease(self) -> timedelta | None:
        """The lease of every claim where suites have scaled it; else it is the job's, the queue's
        or the setting's own."""
        return None if self.lease == DEFAULTS.lease else self.lease

    def scaled(self, factor: float) -> "Defaults":
        """The same with the lease protocol's constants scaled, for suites with short leases."""
        return replace(
            self,
            lease=self.lease * factor,
            stop_within=self.stop_within * factor,
            margin=self.margin * factor,
            renewal_window=self.renewal_window * factor,
            late_commit_window=self.late_commit_window * factor,
            poll=self.poll * factor,
            rescue_interval=self.rescue_interval * factor,
            heartbeat_interval=self.heartbeat_interval * factor,
            blocked_after=self.blocked_after * factor,
        )


DEFAULTS = Defaults()
