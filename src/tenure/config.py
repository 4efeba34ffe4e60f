"""Built-in defaults, task options, and `Backoff`."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final, Literal, TypedDict

from tenure._model.ids import duration as duration  # noqa: PLC0414 - other modules import it from here
from tenure.errors import InvalidValue

# What happens to a job if one of its attempts is lost after it started.
OnLoss = Literal["retry", "fail"]
LONGEST_LEASE = timedelta(days=1)
# Durations are added to datetimes. Within this limit, no sum overflows.
LONGEST_WAIT = timedelta(days=36_500)
FOREVER: Final = LONGEST_WAIT
"""Pass it as `key_for` to keep a deduplication key forever."""


@dataclass(frozen=True, slots=True, init=False)
class Backoff:
    """How long to wait after a failed attempt: `min(cap, base * 2^(attempt-1))` plus jitter.

    Args:
        base: The wait after the first failure (default: 30 s).
        cap: The longest wait before jitter (default: 1 h).
        jitter: The largest random fraction to add, 0 to 1 (default: 0.2).

    Raises:
        InvalidValue: A duration is negative, or `jitter` is not between 0 and 1.
    """

    base: timedelta
    cap: timedelta
    jitter: float

    def __init__(
        self,
        base: "float | timedelta" = timedelta(seconds=30),
        cap: "float | timedelta" = timedelta(hours=1),
        jitter: float = 0.2,
    ) -> None:
        for name, wait in (("base", base), ("cap", cap)):
            if duration(wait, name) < timedelta(0):
                raise InvalidValue(
                    f"{name} must be zero or more, got {wait}; write seconds or a timedelta"
                )
        if not 0 <= jitter <= 1:
            raise InvalidValue(
                f"jitter must be from 0 to 1, got {jitter}; it is a share of the wait, as in 0.2"
            )
        object.__setattr__(self, "base", min(duration(base), LONGEST_WAIT))
        object.__setattr__(self, "cap", min(duration(cap), LONGEST_WAIT))
        object.__setattr__(self, "jitter", jitter)


class TaskOptions(TypedDict, total=False):
    """Options for `@app.task`. Omitted ones come from the queue or the installation's settings.

    Attributes:
        name: The name stored with each job (default: module and function).
        aliases: Old names that still refer to this task.
        queue: The queue for its jobs (default: `"default"`).
        priority: 0 to 9, where 9 is the most urgent (default: 5).
        max_attempts: How many times to try a job (default: 3).
        max_losses: How many times the job's own process may die (default: 3).
        on_loss: `"fail"` ends a job whose attempt was lost after it started (default: `"retry"`).
        timeout: How long an attempt may run. None means no limit (default: 300 s).
        lease: How long a claim lasts between renewals (default: 30 s).
        stop_within: How long the handler has to stop before it is killed (default: 2 s).
        backoff: How long to wait after a failure (default: `Backoff()`).
        give_up_on: Exception classes that fail the job without a retry.
        expires_in: Cancel a job that hasn't started this long after being enqueued.
        process: Run each handler in its own process (default: False).
        memory: That process's memory limit, such as `"1GiB"`.
    """

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
    """Built-in values. Settings, queues, tasks and calls override them, in that order."""

    lease: timedelta = timedelta(seconds=30)
    stop_within: timedelta = timedelta(seconds=2)
    margin: timedelta = timedelta(seconds=1)
    renewal_window: timedelta = timedelta(seconds=1)
    late_commit_window: timedelta = timedelta(seconds=2)
    # How long a lane's first claim may scan dead index entries, which is enough for about a
    # million.
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
    keep_sessions: timedelta = timedelta(days=30)
    keep_notice_groups: timedelta = timedelta(days=7)

    @property
    def forced_lease(self) -> timedelta | None:
        """The lease for every claim if a test suite has scaled it, otherwise None."""
        return None if self.lease == DEFAULTS.lease else self.lease

    def scaled(self, factor: float) -> "Defaults":
        """Return a copy with the lease protocol's durations scaled, for tests with short leases.

        Args:
            factor: The number to multiply the durations by.

        Returns:
            The scaled copy.
        """
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
