"""The rules for notices: valid values, and the requests in each format."""

import re
from collections.abc import Mapping
from datetime import timedelta
from enum import StrEnum
from typing import TypeVar
from urllib.parse import urlsplit

from tenure._model.ids import Json
from tenure._model.notice import NOTICE_QUEUE, NewNoticeRule, Notice, NoticeEvent, NoticeFormat
from tenure._rules import payload
from tenure._rules.formatting import span
from tenure.config import duration
from tenure.errors import InvalidValue

PAGERDUTY_URL = "https://events.pagerduty.com/v2/enqueue"
PAGERDUTY_HOSTS = frozenset({"events.pagerduty.com", "events.eu.pagerduty.com"})
DEFAULT_GROUP = timedelta(minutes=5)
SHORTEST_GROUP, LONGEST_GROUP = timedelta(seconds=1), timedelta(days=1)
LONGEST_THRESHOLD = timedelta(days=30)
_PATTERN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:/<>@-]*\*?|\*")
_SECRET = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,62}")
_LONGEST_URL = 2000
_LONGEST_TEXT = 2000
_LONGEST_SUMMARY = 1000  # PagerDuty accepts 1,024.
_TEST = "test"
_TYPES: Mapping[str, str] = {
    NoticeEvent.FAILED: "job.failed",
    NoticeEvent.QUEUE_BEHIND: "queue.behind",
    NoticeEvent.SCHEDULE_MISSED: "schedule.missed",
    NoticeEvent.WORKER_LOST: "worker.lost",
    _TEST: "notice.test",
}


def new_rule(
    name: str,
    event: str,
    *,
    secret: str,
    url: str | None,
    queue: str,
    task: str,
    format: str,  # noqa: A002 - the name that users know
    group_for: "float | timedelta | None",
    threshold: "float | timedelta | None",
) -> NewNoticeRule:
    """Return a valid rule. Raise InvalidValue if a value isn't valid."""
    form = _member(NoticeFormat, format, "format")
    if url is None and form is NoticeFormat.PAGERDUTY:
        url = PAGERDUTY_URL
    return check_rule(
        NewNoticeRule(
            name,
            _member(NoticeEvent, event, "event"),
            secret,
            url,
            queue,
            task,
            form,
            DEFAULT_GROUP if group_for is None else duration(group_for, "group_for"),
            None if threshold is None else duration(threshold, "threshold"),
        )
    )


E = TypeVar("E", bound=StrEnum)


def _member(kind: type[E], value: str, what: str) -> E:
    try:
        return kind(value)
    except ValueError:
        raise InvalidValue(
            f"{what} must be one of {', '.join(kind)}, got {_quoted(value)}"
        ) from None


def check_rule(rule: NewNoticeRule) -> NewNoticeRule:
    """Return a rule that can be stored. Raise InvalidValue if a value isn't valid."""
    payload.check_name(rule.name, "notice rule")
    secret: object = rule.secret
    if not isinstance(secret, str) or not _SECRET.fullmatch(secret):
        raise InvalidValue(
            "secret must be the name of a secret: letters, digits and _, got "
            f'{_quoted(rule.secret)}; write secret="ops", and set TENURE_SECRET_OPS for the workers'
        )
    patterns: dict[str, object] = {"queue": rule.queue, "task": rule.task}
    for what, pattern in patterns.items():
        if (
            not isinstance(pattern, str)
            or len(pattern) > payload.MAX_NAME
            or not _PATTERN.fullmatch(pattern)
        ):
            raise InvalidValue(
                f"{what} must be a name, a prefix as in mail.*, or *, got {_quoted(pattern)}"
            )
    _check_subject(rule)
    _check_url(rule)
    if not SHORTEST_GROUP <= rule.group_for <= LONGEST_GROUP:
        raise InvalidValue(
            f"group_for must be from 1 second to 1 day, got {rule.group_for}; a cause makes at "
            "most one notice in this time (default: 5 min)"
        )
    return rule


def _check_subject(rule: NewNoticeRule) -> None:
    event, threshold = rule.event, rule.threshold
    if event is NoticeEvent.WORKER_LOST and rule.queue != "*":
        raise InvalidValue(
            f"queue must be * for {event}, got {_quoted(rule.queue)}; a worker serves several"
        )
    if event in (NoticeEvent.WORKER_LOST, NoticeEvent.QUEUE_BEHIND) and rule.task != "*":
        raise InvalidValue(f"task must be * for {event}, got {_quoted(rule.task)}; omit it")
    if (event is NoticeEvent.QUEUE_BEHIND) != (threshold is not None):
        raise InvalidValue(
            f"threshold must be how late a queue may be, got None; {event} needs one, as in 5m"
            if threshold is None
            else f"threshold must be None for {event}, got {threshold}; omit it"
        )
    if threshold is not None and not timedelta(0) < threshold <= LONGEST_THRESHOLD:
        raise InvalidValue(
            f"threshold must be positive and at most {LONGEST_THRESHOLD.days} days, got {threshold}"
        )


def _check_url(rule: NewNoticeRule) -> None:
    if rule.format is NoticeFormat.SLACK:
        if rule.url is not None:
            # It is a credential. A rule isn't a secret.
            raise InvalidValue(
                "url must be None for the format slack, got one; Slack's webhook URL is a secret, "
                f"so set TENURE_SECRET_{rule.secret.upper()} to it for the workers"
            )
        return
    if rule.url is None:
        raise InvalidValue(
            f"url must be the address of the receiver, got None; the format {rule.format} needs one"
        )
    try:
        parts = urlsplit(rule.url)
        parts.port  # noqa: B018 - raises for a port that isn't one
    except ValueError:
        parts = urlsplit("")
    valid = parts.scheme in ("http", "https") and parts.hostname and parts.username is None
    if not valid or len(rule.url) > _LONGEST_URL or not rule.url.isprintable() or " " in rule.url:
        raise InvalidValue(
            "url must be an http or https URL without a user name, got something else; write "
            "https://hooks.example.com/tenure"
        )


def _quoted(text: object) -> str:
    return repr(str(text)[:60])


def is_about_notices(queue: str) -> bool:
    """Return whether a queue holds notices, which are never events."""
    return queue == NOTICE_QUEUE


def notice_type(event: str) -> str:
    """Return the `type` of an event, such as job.failed."""
    return _TYPES.get(event, event)


def summary(notice: Notice) -> str:
    """Describe a notice in one line."""
    several = notice.count > 1
    match notice.event:
        case NoticeEvent.FAILED if notice.is_other:
            return f"{notice.count:,} jobs failed for other causes"
        case NoticeEvent.FAILED:
            what = f"{notice.count:,} jobs" if several else f"Job {notice.job_id}"
            cause = f": {notice.signature}" if notice.signature else ""
            return f"{what} of task {notice.task} failed in queue {notice.queue}{cause}"
        case NoticeEvent.QUEUE_BEHIND:
            waited = span(timedelta(seconds=notice.waited or 0))
            return f"Queue {notice.queue} is behind: its oldest job has waited {waited}"
        case NoticeEvent.SCHEDULE_MISSED:
            times = f"{notice.count:,} times" if several else "once"
            return f"Schedule {notice.subject} was missed {times}"
        case NoticeEvent.WORKER_LOST:
            if several:
                return f"{notice.count:,} workers were lost, the last one is {notice.subject}"
            return f"Worker {notice.subject} was lost"
        case _:
            return f"This is a test of the notice rule {notice.rule}"


def standard(notice: Notice) -> dict[str, Json]:
    """Return the body of the format standard: type, timestamp and data."""
    data: dict[str, Json] = {
        "rule": notice.rule,
        "summary": _cut(summary(notice), _LONGEST_SUMMARY),
        "group": notice.group,
        "count": notice.count,
        "first_at": notice.first_at,
        "last_at": notice.last_at,
        **_details(notice),
    }
    if notice.event == NoticeEvent.QUEUE_BEHIND:
        # It counts how often a process looked.
        del data["count"]
    return {"type": notice_type(notice.event), "timestamp": notice.last_at, "data": data}


def _details(notice: Notice) -> dict[str, Json]:
    """Return the facts that this notice has."""
    facts: dict[str, Json] = {
        "queue": notice.queue or None,
        "task": notice.task or None,
        "signature": notice.signature,
        "error": None if notice.error is None else _cut(notice.error, _LONGEST_TEXT),
        "job_id": None if notice.job_id is None else str(notice.job_id),
        "last_job_id": None if notice.last_job_id is None else str(notice.last_job_id),
        "waited_s": notice.waited,
        "url": notice.link,
    }
    if notice.event == NoticeEvent.SCHEDULE_MISSED:
        facts["schedule"] = notice.subject
    if notice.event == NoticeEvent.WORKER_LOST:
        facts["worker"] = notice.subject
    return {name: value for name, value in facts.items() if value is not None}


def slack(notice: Notice) -> dict[str, Json]:
    """Return the body of Slack's incoming webhooks."""
    line = _cut(summary(notice), _LONGEST_SUMMARY)
    lines = [f"*{_slack_text(line)}*"]
    if notice.error:
        lines.append(f"```{_slack_text(_cut(notice.error, _LONGEST_TEXT))}```")
    lines.append(f"From {notice.first_at} to {notice.last_at}, rule {_slack_text(notice.rule)}")
    if notice.link:
        lines.append(f"<{notice.link}|Open the dashboard>")
    block: Json = {
        "type": "section",
        "text": {"type": "mrkdwn", "text": _cut("\n".join(lines), 3000)},
    }
    return {"text": _slack_text(line), "blocks": [block]}


def _slack_text(text: str) -> str:
    """Escape a text, so that it can't mention people or make links."""
    escaped = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    # These characters would end the bold text or the code block.
    return escaped.replace("`", "\u02cb").replace("*", "\u2217")


def pagerduty(notice: Notice, *, source: str) -> dict[str, Json]:
    """Return the body of PagerDuty's Events API v2, without the routing key.

    Args:
        notice: The notice.
        source: The affected system, such as the schema's name.
    """
    links: list[Json] = [{"href": notice.link, "text": "Dashboard"}] if notice.link else []
    return {
        "event_action": "trigger",
        "dedup_key": f"tenure:{source}:{notice.rule}:{notice.group}"[:255],
        "payload": {
            "summary": _cut(summary(notice), _LONGEST_SUMMARY),
            "source": source,
            "severity": "info" if notice.event == _TEST else "error",
            "timestamp": notice.last_at,
            "component": notice.task or notice.subject or notice.queue or "tenure",
            "group": notice.queue or notice.event,
            "class": notice_type(notice.event),
            "custom_details": {
                "rule": notice.rule,
                "count": notice.count,
                "first_at": notice.first_at,
                **_details(notice),
            },
        },
        "links": links,
    }


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[: longest - 1]}…"
