"""Every verb has two faces, and they do the same."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING

import pytest

from support.race_helpers import enqueued
from tenure.admin import (
    Admin,
    Audit,
    By,
    DeduplicationKeys,
    Jobs,
    Notices,
    Operations,
    Queues,
    RuntimeSettings,
    Schedules,
    Schema,
    Sessions,
    State,
    Tokens,
    Workers,
)
from tenure.admin._commands import AdminCommand, AsyncTwin, SubGroup

if TYPE_CHECKING:
    from support.store import Database

GROUPS: tuple[type, ...] = (
    *(Admin, Audit, Jobs, Operations, Queues, RuntimeSettings, Schedules, Schema, Tokens),
    *(DeduplicationKeys, Notices, Sessions),
    Workers,
)
VERBS = {
    group: [name for name in dir(group) if isinstance(getattr(group, name), AdminCommand)]
    for group in GROUPS
}
ALL = [(group, name) for group in GROUPS for name in VERBS[group]]
# Public methods that are not commands, and why.
OTHERS: dict[type, set[str]] = {
    # It tries connections of its own, and continues without an answer.
    Admin: {"doctor", "adoctor"},
    # A migration needs a connection without a deadline.
    Schema: {"migrate", "amigrate"},
    # Ticks are found between two operations; a preview asks no database.
    Schedules: {"backfill", "abackfill", "preview_timing"},
}


@pytest.mark.parametrize(("group", "name"), ALL)
def test_every_verb_has_an_async_twin_by_its_name(group: type, name: str) -> None:
    verb, twin = getattr(group, name), getattr(group, f"a{name}")
    assert isinstance(twin, AsyncTwin)
    assert twin.__wrapped__ is verb.__wrapped__
    assert twin.__doc__ == verb.__doc__
    assert verb.__doc__


@pytest.mark.parametrize("group", GROUPS)
def test_every_public_method_is_a_verb_or_says_why_not(group: type) -> None:
    public = {name for name in dir(group) if not name.startswith("_")}
    verbs = {each for name in VERBS[group] for each in (name, f"a{name}")}
    groups = {name for name in public if isinstance(getattr(group, name), SubGroup)}
    assert public - verbs - groups == OTHERS.get(group, set())


def test_every_group_is_an_attribute_of_admin(admin: Admin) -> None:
    found = {name for name, value in vars(Admin).items() if isinstance(value, SubGroup)}
    assert {Admin, *(type(getattr(admin, name)) for name in found)} == set(GROUPS)


@pytest.mark.parametrize("verb", ["create", "revoke"])
def test_every_change_of_a_token_takes_who_and_why(verb: str) -> None:
    for name in (verb, f"a{verb}"):
        signature = inspect.signature(inspect.unwrap(getattr(Tokens, name)))
        assert signature.parameters["by"].default is inspect.Parameter.empty


@pytest.mark.parametrize(
    "verb", ["create", "update", "pause", "resume", "delete", "run", "backfill"]
)
def test_every_change_of_a_schedule_takes_who_and_why(verb: str) -> None:
    """Shows R28."""
    for name in (verb, f"a{verb}"):
        method = getattr(Schedules, name)
        signature = inspect.signature(inspect.unwrap(method))
        assert signature.parameters["by"].default is inspect.Parameter.empty


@pytest.mark.parametrize("verb", ["start", "pause", "resume", "abort"])
def test_every_change_of_an_operation_takes_who_and_why(verb: str) -> None:
    """Shows R15, R36."""
    signature = inspect.signature(inspect.unwrap(getattr(Operations, verb)))
    assert signature.parameters["by"].default is inspect.Parameter.empty


async def test_both_faces_answer_the_same(db: Database, admin: Admin) -> None:
    [job_id] = await enqueued(db)
    assert inspect.iscoroutinefunction(admin.jobs.aget)
    assert not inspect.iscoroutinefunction(admin.jobs.get)
    assert admin.jobs.get(job_id) == await admin.jobs.aget(job_id) is not None


@pytest.mark.parametrize("verb", ["hold", "cancel", "retry", "revoke", "discard", "resume"])
async def test_every_change_of_a_job_takes_who_and_why(admin: Admin, verb: str) -> None:
    assert "by" in inspect.signature(getattr(admin.jobs, verb)).parameters
    with pytest.raises(TypeError, match="by"):
        getattr(admin.jobs, verb)([1])


async def test_what_the_async_face_did_the_sync_one_sees(db: Database, admin: Admin) -> None:
    [job_id] = await enqueued(db)
    await admin.jobs.acancel([job_id], By("ana"))
    job = admin.jobs.get(job_id)
    assert job is not None
    assert job.state is State.CANCELLED
