"""Rules for notices, and what each format sends."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from tenure._model.notice import Notice
from tenure._rules.notices import (
    PAGERDUTY_URL,
    new_rule,
    pagerduty,
    slack,
    standard,
    summary,
)
from tenure.errors import InvalidValue

FAILED = Notice(
    rule="ops",
    event="failed",
    group="4f",
    count=3,
    first_at="2026-11-18T10:00:00.000000Z",
    last_at="2026-11-18T10:05:00.000000Z",
    queue="mail",
    task="mail.send",
    job_id=7,
    last_job_id=9,
    error="no such mailbox",
    signature="SMTPError: no such mailbox",
    link="https://jobs.example.com/failed",
)


def rule(**fields: Any) -> Any:
    given: dict[str, Any] = {
        "secret": "ops",
        "url": "https://hooks.example.com/x",
        "queue": "*",
        "task": "*",
        "format": "standard",
        "group_for": None,
        "threshold": None,
        **fields,
    }
    name, event = given.pop("name", "ops"), given.pop("event", "failed")
    return new_rule(name, event, **given)


def test_a_rule_has_defaults() -> None:
    assert rule().group_for == timedelta(minutes=5)
    assert rule(format="pagerduty", url=None).url == PAGERDUTY_URL
    assert rule(format="slack", url=None).url is None
    assert rule(event="queue_behind", threshold=300).threshold == timedelta(minutes=5)


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"name": "a b"}, "notice rule"),
        ({"event": "done"}, "event must be one of failed, queue_behind"),
        ({"format": "teams"}, "format must be one of standard, slack, pagerduty"),
        ({"secret": "whsec_abc=="}, "secret must be the name of a secret"),
        ({"secret": ""}, "secret must be the name of a secret"),
        ({"queue": "a*b"}, "queue must be a name, a prefix"),
        ({"queue": "%"}, "queue must be a name, a prefix"),
        ({"task": ""}, "task must be a name, a prefix"),
        ({"url": None}, "url must be the address of the receiver"),
        ({"url": "ftp://example.com"}, "url must be an http or https URL"),
        ({"url": "https://"}, "url must be an http or https URL"),
        ({"url": "https://user:word@example.com/"}, "url must be an http or https URL"),
        ({"url": "https://example.com:99999/"}, "url must be an http or https URL"),
        ({"url": "https://example.com/a b"}, "url must be an http or https URL"),
        ({"url": "https://example.com/\n"}, "url must be an http or https URL"),
        ({"format": "slack"}, "url must be None for the format slack"),
        ({"group_for": 0}, "group_for must be from 1 second to 1 day"),
        ({"group_for": 86401}, "group_for must be from 1 second to 1 day"),
        ({"threshold": 5}, "threshold must be None for failed"),
        ({"event": "queue_behind"}, "threshold must be how late a queue may be"),
        ({"event": "queue_behind", "threshold": 0}, "threshold must be positive"),
        ({"event": "queue_behind", "threshold": 5, "task": "a"}, "task must be * for queue_behind"),
        ({"event": "worker_lost", "queue": "a"}, "queue must be * for worker_lost"),
    ],
)
def test_an_invalid_rule_is_refused(fields: dict[str, Any], text: str) -> None:
    with pytest.raises(InvalidValue) as error:
        rule(**fields)
    assert text in str(error.value)
    assert "whsec" not in str(error.value).replace("'whsec_abc=='", "")


def test_the_standard_format_has_type_timestamp_and_data() -> None:
    assert standard(FAILED) == {
        "type": "job.failed",
        "timestamp": "2026-11-18T10:05:00.000000Z",
        "data": {
            "rule": "ops",
            "summary": "3 jobs of task mail.send failed in queue mail: SMTPError: no such mailbox",
            "group": "4f",
            "count": 3,
            "first_at": "2026-11-18T10:00:00.000000Z",
            "last_at": "2026-11-18T10:05:00.000000Z",
            "queue": "mail",
            "task": "mail.send",
            "signature": "SMTPError: no such mailbox",
            "error": "no such mailbox",
            "job_id": "7",
            "last_job_id": "9",
            "url": "https://jobs.example.com/failed",
        },
    }


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"count": 1}, "Job 7 of task mail.send failed in queue mail: SMTPError: no such mailbox"),
        ({"is_other": True, "count": 5}, "5 jobs failed for other causes"),
        (
            {"event": "queue_behind", "waited": 421},
            "Queue mail is behind: its oldest job has waited 7 min 1 s",
        ),
        (
            {"event": "schedule_missed", "subject": "nightly", "count": 1},
            "Schedule nightly was missed once",
        ),
        ({"event": "schedule_missed", "subject": "n"}, "Schedule n was missed 3 times"),
        ({"event": "worker_lost", "subject": "web-1", "count": 1}, "Worker web-1 was lost"),
        (
            {"event": "worker_lost", "subject": "web-1"},
            "3 workers were lost, the last one is web-1",
        ),
        ({"event": "test"}, "This is a test of the notice rule ops"),
    ],
)
def test_each_event_has_a_summary(fields: dict[str, Any], text: str) -> None:
    notice = replace(FAILED, **fields)
    assert summary(notice) == text
    for body in (standard(notice), slack(notice), pagerduty(notice, source="tenure")):
        assert json.loads(json.dumps(body)) == body


def test_slack_cannot_be_made_to_mention_people() -> None:
    error = "<!channel> ```now``` & <https://evil|here>"
    notice = replace(FAILED, error=error, signature="<!here>")
    text = json.dumps(slack(notice), ensure_ascii=False)
    assert "<!" not in text
    assert "<https://evil" not in text
    assert text.count("```") == 2
    assert "&lt;!channel&gt;" in text


def test_slack_and_pagerduty_accept_the_length_of_any_text() -> None:
    notice = replace(FAILED, error="x" * 20_000, signature="y" * 20_000, group="g" * 400)
    body: Any = slack(notice)
    assert len(body["blocks"][0]["text"]["text"]) <= 3000
    event: Any = pagerduty(notice, source="tenure")
    assert len(event["payload"]["summary"]) <= 1024
    assert len(event["dedup_key"]) <= 255


def test_pagerduty_groups_by_cause() -> None:
    one, other = pagerduty(FAILED, source="a"), pagerduty(replace(FAILED, count=9), source="a")
    assert one["dedup_key"] == other["dedup_key"] == "tenure:a:ops:4f"
    assert one["dedup_key"] != pagerduty(replace(FAILED, group="5e"), source="a")["dedup_key"]
