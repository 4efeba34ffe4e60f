"""Two operators at once: neither undoes what the other did, nor misreports it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from support.race_helpers import BY, waiting

if TYPE_CHECKING:
    from support.store import Database


async def test_a_pause_and_a_limit_set_at_once_both_stand(db: Database) -> None:
    """Each operator changes one thing; the second must not undo the first. Shows R38."""
    await db.party("main")
    one, other = await db.party("one"), await db.party("other")

    async with one.transaction() as tx:
        await tx.run(db.store.queues.pause("default", BY))
        limit = await waiting(db, other, db.store.queues.limit("default", 3, BY))

    after = await limit
    assert after.max_running == 3
    assert after.paused_at is not None


async def test_the_audit_of_a_setting_tells_what_the_waiting_change_replaced(
    db: Database,
) -> None:
    """Who reads the audit must be able to go back step by step. Shows R38."""
    await db.party("main")
    one, other = await db.party("one"), await db.party("other")

    async with one.transaction() as tx:
        await tx.run(db.store.settings.set("max_attempts", 4, BY))
        change = await waiting(db, other, db.store.settings.set("max_attempts", 5, BY))

    await change
    rows = await db.run(db.store.audit.list("setting:max_attempts"))
    assert [(row.before, row.after) for row in rows] == [(4, 5), (None, 4)]
