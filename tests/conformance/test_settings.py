"""Settings: changed at run time for the whole installation, and enforced by the store."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tenure._rules.runtime_settings import SETTINGS
from tenure.errors import InvalidValue
from tests.conformance.acts import BY, OWN, a_job, claim_one, count, enqueue, get, settle

if TYPE_CHECKING:
    from support.store import Database


async def test_settings_are_read_back_until_they_are_reset(db: Database) -> None:
    """Shows R38."""
    assert await db.run(db.store.settings.changed()) == {}
    await db.run(db.store.settings.set("backoff_base", 10, BY))
    await db.run(db.store.settings.set("backoff_jitter", 0.5, BY))
    await db.run(db.store.settings.set("backoff_base", 12.5, BY))
    assert await db.run(db.store.settings.changed()) == {
        "backoff_base": 12.5,
        "backoff_jitter": 0.5,
    }

    await db.run(db.store.settings.reset("backoff_base", BY))
    assert await db.run(db.store.settings.changed()) == {"backoff_jitter": 0.5}


async def test_attempts_and_losses_hold_from_the_next_enqueue_on(db: Database) -> None:
    """Shows R38."""
    before = await enqueue(db)
    await db.run(db.store.settings.set("max_attempts", 8, BY))
    await db.run(db.store.settings.set("max_losses", 1, BY))
    jobs = [a_job(priority=9), a_job(key="k"), a_job(max_attempts=2)]
    first, keyed, own = await db.run(db.store.jobs.enqueue(jobs))

    assert (await get(db, before)).max_attempts == 3
    assert (await get(db, first.id)).max_attempts == 8
    assert (await get(db, keyed.id)).max_attempts == 8
    assert (await get(db, own.id)).max_attempts == 2
    await settle(db, await claim_one(db), OWN)
    assert (await get(db, first.id)).done_reason == "poison"


async def test_a_setting_that_does_not_exist_is_refused_with_those_that_do(db: Database) -> None:
    """Shows R38."""
    with pytest.raises(
        InvalidValue, match=r"setting 'leese' does not exist; settings are lease, max_attempts"
    ):
        await db.run(db.store.settings.set("leese", 30, BY))
    assert await count(db, "setting") == await count(db, "audit") == 0


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("lease", 1),
        ("lease", 200_000),
        ("lease", -30),
        ("lease", "30"),
        ("lease", None),
        ("lease", True),
        ("lease", float("nan")),
        ("lease", float("inf")),
        ("max_attempts", 0),
        ("max_attempts", 1.5),
        ("max_attempts", 40_000),
        ("max_losses", True),
        ("backoff_base", -1),
        ("backoff_cap", "1h"),
        ("backoff_cap", 1e300),
        ("backoff_jitter", 1.1),
        ("backoff_jitter", -0.1),
        ("keep_archive_days", 0),
        ("keep_failed_days", [90]),
        ("redact", "ssn"),
        ("redact", ["customer."]),
        ("redact", [""]),
        ("redact", [7]),
        ("redact", ["x"] * 201),
    ],
)
async def test_a_value_that_a_setting_cannot_have_is_refused_with_words(
    db: Database, name: str, value: Any
) -> None:
    """Shows R38."""
    with pytest.raises(InvalidValue):
        await db.run(db.store.settings.set(name, value, BY))
    assert await count(db, "setting") == await count(db, "audit") == 0


@pytest.mark.parametrize("name", SETTINGS)
async def test_every_setting_can_be_set_and_reset(db: Database, name: str) -> None:
    """Shows R38."""
    special: dict[str, Any] = {
        "redact": ["ssn"],
        "backoff_jitter": 1,
        "backoff_enforced": True,
        "enabled_kinds": ["http"],
    }
    value: Any = special.get(name, 60)
    await db.run(db.store.settings.set(name, value, BY))
    assert await db.run(db.store.settings.changed()) == {name: value}

    await db.run(db.store.settings.reset(name, BY))
    assert await db.run(db.store.settings.changed()) == {}
