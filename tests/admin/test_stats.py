"""Figures by both faces, their refusals, and pages of groups."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from support.race_helpers import dead_letter
from tenure.admin import By, to_json
from tenure.errors import InvalidValue
from tenure.types import Count, ExplanationCode

if TYPE_CHECKING:
    from support.store import Database
    from tenure.admin import Admin


async def test_both_faces_tell_the_same(admin: Admin) -> None:
    job_id = admin.jobs.enqueue("send", {}, By("ada"), queue="mail").id
    answer, again = admin.jobs.why(job_id), await admin.jobs.awhy(job_id)
    assert replace(answer, now=None) == replace(again, now=None)
    assert admin.jobs.failed_groups() == await admin.jobs.afailed_groups()
    [one], [other] = admin.queues.depths(), await admin.queues.adepths()
    assert (one.queue, one.due) == (other.queue, other.due) == ("mail", Count(1))
    since = datetime.now(UTC) - timedelta(hours=1)
    until = since + timedelta(minutes=30)
    assert admin.stats(since=since, until=until) == await admin.astats(since=since, until=until)


async def test_figures_can_be_written_as_json(admin: Admin, db: Database) -> None:
    job_id = admin.jobs.enqueue("send", {}, By("ada"), queue="mail").id
    await dead_letter(db)
    assert to_json(admin.stats(step=3600))["whole"]["outcomes"]["completed"] == 0
    assert to_json(admin.queues.depths())[1]["due"] == {"value": 1, "more": False}
    assert to_json(admin.jobs.why(job_id))["code"] == ExplanationCode.NOT_SERVED
    assert to_json(admin.jobs.failed_groups())["groups"][0]["task"] == "work"


async def test_groups_come_page_by_page(admin: Admin, db: Database) -> None:
    for task in ("a", "b", "c"):
        await dead_letter(db)
        await db.fetch("UPDATE tenure.job_failed SET task = $1 WHERE task = 'work'", task)
    first = admin.jobs.failed_groups(count=2)
    assert [group.task for group in first.groups] == ["a", "b"]
    second = admin.jobs.failed_groups(count=2, after=first.next)
    assert ([group.task for group in second.groups], second.next) == (["c"], None)


@pytest.mark.parametrize(
    "after", ["", "x", "5", "W10=", "WzEsMl0=", "WyJcdTAwMDAiLCBudWxsXQ==", "é"]
)
async def test_a_place_that_no_page_gave_out_is_refused(admin: Admin, after: str) -> None:
    with pytest.raises(InvalidValue, match="must be the `next` of the last page"):
        admin.jobs.failed_groups(after=after)


@pytest.mark.parametrize("count", [0, 1001])
async def test_a_page_has_bounds(admin: Admin, count: int) -> None:
    with pytest.raises(InvalidValue, match="count must be from 1 to 1,000"):
        admin.jobs.failed_groups(count=count)
