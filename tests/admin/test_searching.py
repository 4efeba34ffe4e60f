"""The verb that searches: its faces, its pages, and what it refuses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from support.race_helpers import dead_letter, enqueued
from tenure.admin import WINDOWS, By
from tenure.errors import InvalidValue
from tenure.types import JobView, Selector

if TYPE_CHECKING:
    from support.store import Database
    from tenure.admin import Admin


async def test_both_faces_answer_with_what_was_searched(db: Database, admin: Admin) -> None:
    """Shows R36."""
    [mail] = await enqueued(db, queue="mail")
    dead = await dead_letter(db)
    found = admin.jobs.search("state:queued,failed")
    assert [job.id for job in found.jobs] == [dead, mail]
    assert (found.searched, found.bounded, found.window) == (2, False, WINDOWS[0])
    assert found.summary == f"searched 2 in {found.took.total_seconds() * 1000:.0f} ms"
    again = await admin.jobs.asearch(Selector(state=(JobView.FAILED,)), widen=2)
    assert ([job.id for job in again.jobs], again.window) == ([dead], WINDOWS[2])


async def test_pages_hold_every_job_once(db: Database, admin: Admin) -> None:
    ids = [*await enqueued(db, 5, queue="mail"), await dead_letter(db)]
    seen, after = list[int](), None
    while True:
        page = admin.jobs.search(count=2, after=after)
        seen += [job.id for job in page.jobs]
        after = page.next
        if after is None:
            break
    assert seen == sorted(ids, reverse=True)


async def test_a_field_that_is_hidden_is_not_searched_for(admin: Admin) -> None:
    """A guess that is confirmed would tell what redaction hides."""
    admin.settings.set("redact", ["customer.iban"], By("ana"))
    for answer in ("args.password:x", "args.login.api_key:x", "args.customer.iban:x"):
        with pytest.raises(InvalidValue, match="must not name a hidden field"):
            admin.jobs.search(answer)
    assert admin.jobs.search("args.customer.name:x").jobs == []


@pytest.mark.parametrize(
    "requested",
    [{"selector": "x"}, {"count": 0}, {"widen": 3}, {"after": "x1"}, {"after": "q1-q1"}],
)
async def test_what_is_outside_is_refused(admin: Admin, requested: dict[str, Any]) -> None:
    with pytest.raises(InvalidValue):
        admin.jobs.search(**requested)
