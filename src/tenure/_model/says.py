"""What a handler can say by raising, and by returning, beside a plain result or error."""

from dataclasses import dataclass
from datetime import timedelta

from tenure._model.durations import duration
from tenure._model.ids import Json


class Said(Exception):
    """The base of what a handler says by raising it."""


class Retry(Said):
    """Try again, after this long instead of the backoff. The attempt stays charged."""

    def __init__(self, reason: str = "", *, after: float | timedelta | None = None) -> None:
        super().__init__(reason)
        self.after: timedelta | None = None if after is None else duration(after, "after")


class GiveUp(Said):
    """Fail for good, whatever attempts are left; the job is among the dead letters."""


class Cancel(Said):
    """End the job without a result, and without a failure."""


class Snooze(Said):
    """Go on later. The attempt is given back."""

    def __init__(self, pause: float | timedelta) -> None:
        super().__init__(f"for {pause}")
        self.pause: timedelta = duration(pause, "a snooze")


class TargetReached(BaseException):
    """Raised by the report that reached the job's target: it has settled the job, and the
    handler is over. No Exception, so that `except Exception` lets it pass."""


@dataclass(frozen=True, slots=True)
class Finished:
    """A result with the reason why there is no more to do."""

    reason: str
    result: Json = None

    def __post_init__(self) -> None:
        if not isinstance(self.reason, str):
            raise TypeError(f"a reason is text, not {self.reason!r}")
