"""What may be a schedule: its name, its times, its job and its policy. Refused before any SQL."""

from datetime import timedelta
from enum import StrEnum
from typing import TypeVar

from tenure._model.job import NewJob
from tenure._model.schedule import NewSchedule, Policy, PolicyChange
from tenure._rules import payload, timing
from tenure.config import LONGEST_WAIT
from tenure.errors import InvalidValue

LONGEST_JITTER = timedelta(days=1)
MOST_MISSED = 10_000
Word = TypeVar("Word", bound=StrEnum)


def check(new: NewSchedule) -> None:
    """Refuse a schedule that could not be stored, shown or fired (InvalidValue)."""
    payload.check_name(new.name, "schedule")
    timing.check(new.timing)
    _check_job(new.job)
    check_policy(new.policy)


def check_policy(policy: Policy | PolicyChange) -> None:
    """Refuse a policy, or a change of one, that is out of bounds."""
    within, most, jitter = policy.missed_within, policy.missed_most, policy.jitter
    if within is not None and not timedelta(0) < within <= LONGEST_WAIT:
        raise InvalidValue(
            f"missed_within is {within}; it must be more than nothing, and at most "
            f'{LONGEST_WAIT.days:,} days; to make up for nothing, write missed="skip"'
        )
    if most is not None and not 1 <= most <= MOST_MISSED:
        raise InvalidValue(
            f"missed_most is {most}; it must be 1 to {MOST_MISSED:,}; to make up for nothing, "
            'write missed="skip"'
        )
    if jitter is not None and not timedelta(0) <= jitter <= LONGEST_JITTER:
        raise InvalidValue(
            f"jitter is {jitter}; jobs are due up to so long after their tick: write 0 to 86,400 "
            "seconds"
        )


def unknown(name: str) -> InvalidValue:
    """What is told of a name that no schedule has."""
    return InvalidValue(
        f"there is no schedule {name!r}; `tenure schedule list` shows those there are"
    )


def word(kind: type[Word], said: str, what: str) -> Word:
    """The word's value, or InvalidValue with the words there are."""
    try:
        return kind(said)
    except ValueError:
        words = ", ".join(repr(str(each)) for each in kind)
        raise InvalidValue(f"{what} is {said!r}; write one of {words}") from None


def _check_job(job: NewJob) -> None:
    payload.check(job)
    payload.encode(job.args)
    payload.encode(job.meta, what="the meta fields")
    if job.run_at is not None or job.delay is not None or job.key is not None:
        raise InvalidValue(
            "the job of a schedule has no run_at, delay or key of its own: its ticks give them; "
            "leave them out"
        )
