"""When two requests are the same: by what they ask for, and not by how it was written."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from tenure._model.ids import JobId, Token
from tenure._model.job import JobRow, NewJob, State
from tenure._rules.idempotency import digest, key

KEYED = "ho7qjbou80"
JOB = NewJob("send", args={"to": "Ada", "n": 1})


def test_the_order_of_names_does_not_matter_the_order_of_jobs_does() -> None:
    assert digest([JOB]) == digest([NewJob("send", args={"n": 1, "to": "Ada"})])
    other = NewJob("send", args={})
    assert digest([JOB, other]) != digest([other, JOB])


@pytest.mark.parametrize(
    "other",
    [
        NewJob("sent", args=JOB.args),
        NewJob("send", args={"to": "Ada", "n": "1"}),
        NewJob("send", args=JOB.args, queue="mail"),
        NewJob("send", args=JOB.args, priority=6),
        NewJob("send", args=JOB.args, delay=timedelta(seconds=1)),
        NewJob("send", args=JOB.args, run_at=datetime(2030, 1, 1, tzinfo=UTC)),
        NewJob("send", args=JOB.args, key="k"),
        NewJob("send", args=JOB.args, held=True),
        NewJob("send", args=JOB.args, meta={"tags": ["a"]}),
    ],
)
def test_whatever_differs_makes_another_request(other: NewJob) -> None:
    """Shows R36."""
    assert digest([other]) != digest([JOB])


def test_omitted_values_are_not_written() -> None:
    """A release that knows one option more must not refuse what was sent to the one before."""
    assert digest([NewJob("send")]) == (
        "0fa8f37aca9366c53e8af928ebe5adc486ce489100c75c681bd86597802fa4fb"
    )


def test_a_jobs_key_elsewhere_has_the_microsecond_of_its_enqueue() -> None:
    """Shows R20."""
    at = datetime(2026, 11, 16, 12, 30, 15, 123456, tzinfo=UTC)
    job = JobRow(JobId(7), State.RUNNING, "q", "t", {}, 5, 1, 3, 0, Token(1), at, at)
    other = replace(job, created_at=at + timedelta(microseconds=1))
    assert key("tenure", job) == f"tenure-7-{KEYED}"
    assert key("tenure", job) != key("tenure", other) != key("tenants", other)
    assert int(key("tenure", other).rpartition("-")[2], 36) - int(KEYED, 36) == 1


@pytest.mark.parametrize(
    ("at", "digits"),
    [
        (datetime(1970, 1, 1, tzinfo=UTC), "0"),
        (datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC), "-1"),
        (datetime(2, 1, 1, tzinfo=UTC), "-gzi1vo0zk00"),
    ],
)
def test_a_job_from_before_1970_has_a_key_too(at: datetime, digits: str) -> None:
    """A producer of another language writes the time itself."""
    job = JobRow(JobId(7), State.RUNNING, "q", "t", {}, 5, 1, 3, 0, Token(1), at, at)
    assert key("tenure", job) == f"tenure-7-{digits}"
