"""Models for the rules of notices."""

from datetime import datetime
from typing import Annotated

from pydantic import Field

from tenure.server.schemas.base import (
    IdOut,
    Name,
    Reason,
    RequestModel,
    ResponseModel,
    Seconds,
    SecondsOut,
)
from tenure.types import NoticeEvent, NoticeFormat

_URL = "The receiver. Omit it for `slack`, whose secret is the URL."
_SECRET = "The name of a secret that workers have. Never its value."  # noqa: S105 - a description


class NoticeRuleIn(RequestModel):
    """A new rule for notices."""

    name: Name
    event: NoticeEvent
    secret: Annotated[str, Field(min_length=1, max_length=63, description=_SECRET)]
    url: Annotated[str | None, Field(max_length=2000, description=_URL)] = None
    queue: Annotated[Name, Field(description="A queue, or a prefix such as `mail*`.")] = "*"
    task: Annotated[Name, Field(description="A task, or a prefix such as `mail.*`.")] = "*"
    format: NoticeFormat = NoticeFormat.STANDARD
    group_for: Annotated[Seconds, Field(description="One notice per cause in this time.")] = 300
    threshold: Annotated[
        Seconds | None, Field(description="How late a queue may be, for `queue_behind`.")
    ] = None
    reason: Reason = None


class NoticeRuleOut(ResponseModel):
    """A rule for notices."""

    name: str
    event: NoticeEvent
    queue: str
    task: str
    url: Annotated[str | None, Field(description=_URL)]
    format: NoticeFormat
    secret: Annotated[str, Field(description=_SECRET)]
    group_for: SecondsOut
    threshold: SecondsOut | None
    program: Annotated[str | None, Field(description="The program that declares it in its code.")]
    created_at: datetime
    created_by: str
    changed_at: datetime


class NoticeRuleListOut(ResponseModel):
    """Rules for notices, by name."""

    rules: list[NoticeRuleOut]


class NoticeTestOut(ResponseModel):
    """A test notice."""

    result: Annotated[str, Field(description="What happened: `enqueued`.")]
    job_id: Annotated[IdOut, Field(description="The notice's job.")]
