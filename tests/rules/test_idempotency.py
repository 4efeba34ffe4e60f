"""When two requests are the same: by what they ask for, and not by how it was written."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from tenure._model.job import NewJob
from tenure._rules.idempotency import digest

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


def test_what_is_not_said_does_not_enter() -> None:
    """A release that knows one option more must not refuse what was sent to the one before."""
    assert digest([NewJob("send")]) == (
        "0fa8f37aca9366c53e8af928ebe5adc486ce489100c75c681bd86597802fa4fb"
    )
