"""Every verb has two faces, and they do the same."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING

import pytest

from support.race_helpers import enqueued
from tenure.admin import Admin, By, Operations, Schedules, State, Tokens
from tenure.admin._commands import AdminCommand, AsyncTwin

if TYPE_CHECKING:
    from support.store import Database

VERBS = [name for name in dir(Admin) if isinstance(getattr(Admin, name), AdminCommand)]
OF_SCHEDULES = [
    name for name in dir(Schedules) if isinstance(getattr(Schedules, name), AdminCommand)
]
OF_TOKENS = [name for name in dir(Tokens) if isinstance(getattr(Tokens, name), AdminCommand)]
OF_OPERATIONS = [
    name for name in dir(Operations) if isinstance(getattr(Operations, name), AdminCommand)
]
ALL = [
    *((Admin, name) for name in VERBS),
    *((Schedules, name) for name in OF_SCHEDULES),
    *((Operations, name) for name in OF_OPERATIONS),
    *((Tokens, name) for name in OF_TOKENS),
]


@pytest.mark.parametrize(("group", "name"), ALL)
def test_every_verb_has_an_async_twin_by_its_name(group: type, name: str) -> None:
    verb, twin = getattr(group, name), getattr(group, f"a{name}")
    assert isinstance(twin, AsyncTwin)
    assert twin.__wrapped__ is verb.__wrapped__
    assert twin.__doc__ == verb.__doc__
    assert verb.__doc__


def test_every_public_method_is_a_verb_or_says_why_not() -> None:
    public = {name for name in dir(Admin) if not name.startswith("_")}
    verbs = {each for name in VERBS for each in (name, f"a{name}")}
    # A migration needs a connection without a deadline; the other two perform the verbs.
    assert public - verbs == {
        *("migrate", "amigrate", "perform", "aperform"),
        *("doctor", "adoctor"),  # It tries connections of its own, and goes on without an answer.
        *("schedules", "operations", "tokens"),  # Groups of verbs.
    }


def test_every_public_method_over_schedules_is_a_verb_or_says_why_not() -> None:
    public = {name for name in dir(Schedules) if not name.startswith("_")}
    verbs = {each for name in OF_SCHEDULES for each in (name, f"a{name}")}
    assert public - verbs == {
        *("perform", "aperform"),
        *("backfill", "abackfill"),  # Ticks are found between two operations.
        "preview_timing",  # It asks no database.
    }


def test_every_public_method_over_tokens_is_a_verb() -> None:
    public = {name for name in dir(Tokens) if not name.startswith("_")}
    verbs = {each for name in OF_TOKENS for each in (name, f"a{name}")}
    assert public - verbs == {"perform", "aperform"}


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


def test_every_public_method_over_operations_is_a_verb() -> None:
    public = {name for name in dir(Operations) if not name.startswith("_")}
    verbs = {each for name in OF_OPERATIONS for each in (name, f"a{name}")}
    assert public - verbs == {"perform", "aperform"}


@pytest.mark.parametrize("verb", ["start", "pause", "resume", "abort"])
def test_every_change_of_an_operation_takes_who_and_why(verb: str) -> None:
    """Shows R15, R36."""
    signature = inspect.signature(inspect.unwrap(getattr(Operations, verb)))
    assert signature.parameters["by"].default is inspect.Parameter.empty


async def test_both_faces_answer_the_same(db: Database, admin: Admin) -> None:
    [job_id] = await enqueued(db)
    assert inspect.iscoroutinefunction(admin.ajob)
    assert not inspect.iscoroutinefunction(admin.job)
    assert admin.job(job_id) == await admin.ajob(job_id) is not None


@pytest.mark.parametrize("verb", ["hold", "cancel", "retry", "revoke", "discard", "resume"])
async def test_every_change_of_a_job_takes_who_and_why(admin: Admin, verb: str) -> None:
    assert "by" in inspect.signature(getattr(admin, verb)).parameters
    with pytest.raises(TypeError, match="by"):
        getattr(admin, verb)([1])


async def test_what_the_async_face_did_the_sync_one_sees(db: Database, admin: Admin) -> None:
    [job_id] = await enqueued(db)
    await admin.acancel([job_id], By("ana"))
    job = admin.job(job_id)
    assert job is not None
    assert job.state is State.CANCELLED
