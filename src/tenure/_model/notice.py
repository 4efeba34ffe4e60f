"""Notices: which events call which receiver, and what a receiver gets."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from tenure._model.ids import JobId

NOTICE_TASK = "tenure.notice"
NOTICE_QUEUE = "tenure.notices"
# The group of the causes beyond the first hundred of a rule.
OTHER_CAUSES = "~"


class NoticeEvent(StrEnum):
    """What a notice can be about."""

    FAILED = "failed"
    QUEUE_BEHIND = "queue_behind"
    SCHEDULE_MISSED = "schedule_missed"
    WORKER_LOST = "worker_lost"


class NoticeFormat(StrEnum):
    """The form of a notice's request."""

    STANDARD = "standard"
    SLACK = "slack"
    PAGERDUTY = "pagerduty"


@dataclass(frozen=True, slots=True)
class NewNoticeRule:
    """A rule to store. `secret` is the secret's name; workers have its value.

    `url` is None if the secret is the URL. `threshold` is how late a queue must be.
    """

    name: str
    event: NoticeEvent
    secret: str
    url: str | None = None
    queue: str = "*"
    task: str = "*"
    format: NoticeFormat = NoticeFormat.STANDARD
    group_for: timedelta = timedelta(minutes=5)
    threshold: timedelta | None = None


@dataclass(frozen=True, slots=True)
class NoticeRule:
    """A stored rule. `program` is the program that declares it in its code, or None."""

    name: str
    event: NoticeEvent
    secret: str
    url: str | None
    queue: str
    task: str
    format: NoticeFormat
    group_for: timedelta
    threshold: timedelta | None
    program: str | None
    created_at: datetime
    created_by: str
    changed_at: datetime


@dataclass(frozen=True, slots=True)
class DeclaredNoticeRules:
    """What declaring a program's rules changed. `refused` have another owner."""

    made: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DeadLetterError:
    """The error of a dead letter that a notice is about."""

    job_id: JobId
    type: str | None
    message: str | None
    signature: str | None


@dataclass(frozen=True, slots=True)
class Notice:
    """What a notice reports. Texts are redacted.

    `subject` is a schedule's name, or the last lost worker's. `is_other` means that the rule had
    too many causes, and that these are the rest.
    """

    rule: str
    event: str
    group: str
    count: int
    first_at: str
    last_at: str
    queue: str | None = None
    task: str | None = None
    subject: str | None = None
    waited: float | None = None
    job_id: int | None = None
    last_job_id: int | None = None
    error: str | None = None
    signature: str | None = None
    link: str | None = None
    is_other: bool = False
