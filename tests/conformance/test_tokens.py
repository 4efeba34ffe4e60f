"""Access tokens: found by the digest of their secret, let in while they are active, never shown."""

from __future__ import annotations

from dataclasses import fields
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from support.store import SECOND
from tenure._model.access import NewToken, Scope, TokenState
from tenure._model.audit import By
from tenure._rules import access
from tenure._rules.access import grant
from tenure.errors import InvalidValue
from tests.conformance.acts import BY

if TYPE_CHECKING:
    from support.store import Database
    from tenure._model.access import TokenRow

MAIL = grant(["read", "enqueue"], ["mail.*", "bulk"])
MINUTE = 60 * SECOND


def secret(number: int = 1) -> str:
    return access.secret(number.to_bytes(32))


def new(number: int = 1, **fields: Any) -> NewToken:
    text = secret(number)
    values: dict[str, Any] = {"name": "ci", "grant": MAIL, **fields}
    return NewToken(hint=access.hint(text), digest=access.digest(text), **values)


async def found(db: Database, number: int = 1) -> TokenRow | None:
    return await db.run(db.store.tokens.find(access.digest(secret(number))))


async def test_a_token_is_found_by_its_secrets_digest(db: Database) -> None:
    made = await db.run(db.store.tokens.create(new(), BY))
    assert (made.name, made.hint, made.grant) == ("ci", "tnr_0000", MAIL)
    assert (made.state, made.created_by, made.created_at) == (
        TokenState.ACTIVE,
        "ada",
        db.clock.now,
    )
    row = await found(db)
    assert row is not None
    assert all(getattr(row, f.name) == getattr(made, f.name) for f in fields(made))
    assert await found(db, 2) is None


async def test_the_database_holds_no_secret(db: Database) -> None:
    await db.run(db.store.tokens.create(new(), BY))
    rows = await db.fetch("SELECT t::text AS row FROM tenure.api_token AS t")
    rows += await db.fetch("SELECT a::text AS row FROM tenure.audit AS a")
    assert len(rows) == 2
    assert not [row for row in rows if secret()[8:] in row["row"]]


async def test_a_token_that_has_expired_says_so_by_the_databases_clock(db: Database) -> None:
    await db.run(db.store.tokens.create(new(expires_in=timedelta(hours=1)), BY))
    db.clock.advance(timedelta(hours=1) - SECOND)
    row = await found(db)
    assert row is not None
    assert row.state is TokenState.ACTIVE
    db.clock.advance(SECOND)
    row = await found(db)
    assert row is not None
    assert (row.state, row.expires_at) == (TokenState.EXPIRED, db.clock.now)


async def test_a_revoked_token_stays_so_and_remembers_who(db: Database) -> None:
    made = await db.run(db.store.tokens.create(new(expires_in=MINUTE), BY))
    assert await db.run(db.store.tokens.revoke([made.id, 4711], By("bob"))) == [True, False]
    assert await db.run(db.store.tokens.revoke([made.id], BY)) == [False]
    db.clock.advance(MINUTE)
    row = await found(db)
    assert row is not None
    assert (row.state, row.revoked_by) == (TokenState.REVOKED, "bob")
    assert row.revoked_at == db.clock.now - MINUTE


async def test_what_is_done_to_a_token_is_in_the_audit_without_its_secret(db: Database) -> None:
    made = await db.run(db.store.tokens.create(new(), BY))
    await db.run(db.store.tokens.revoke([made.id], BY))
    revoked, created = await db.run(db.store.audit.list(f"token:{made.id}"))
    assert (created.action, created.actor, created.reason) == ("token.create", "ada", "because")
    assert created.after == {
        "name": "ci",
        "hint": "tnr_0000",
        "scopes": ["enqueue", "read"],
        "queues": ["mail.*", "bulk"],
        "tasks": ["*"],
        "quotas": {},
        "expires_at": None,
    }
    assert (revoked.action, revoked.after) == ("token.revoke", None)


async def test_a_use_is_noted_at_most_once_a_minute(db: Database) -> None:
    first = await db.run(db.store.tokens.create(new(), BY))
    other = await db.run(db.store.tokens.create(new(2), BY))
    assert await db.run(db.store.tokens.touch([first.id, 4711])) == 1
    used = db.clock.now
    db.clock.advance(59 * SECOND)
    assert await db.run(db.store.tokens.touch([first.id, other.id])) == 1
    row = await found(db)
    assert row is not None
    assert row.last_used_at == used
    db.clock.advance(SECOND)
    assert await db.run(db.store.tokens.touch([first.id])) == 1
    assert await db.run(db.store.tokens.touch([])) == 0


async def test_a_use_is_noted_without_a_wait(db: Database) -> None:
    made = await db.run(db.store.tokens.create(new(), BY))
    operator = await db.caller("operator")
    async with operator.transaction():
        await operator.connection.execute("SELECT FROM tenure.api_token FOR UPDATE")
        assert await db.run(db.store.tokens.touch([made.id])) == 0


async def test_tokens_are_listed_newest_first_and_by_pages(db: Database) -> None:
    made = [await db.run(db.store.tokens.create(new(n, name=f"n{n}"), BY)) for n in range(1, 5)]
    await db.run(db.store.tokens.create(new(9, expires_in=SECOND), BY))
    await db.run(db.store.tokens.revoke([made[0].id], BY))
    db.clock.advance(SECOND)
    page = await db.run(db.store.tokens.list(count=3))
    rest = await db.run(db.store.tokens.list(count=3, before=page[-1].id))
    assert [row.name for row in [*page, *rest]] == ["ci", "n4", "n3", "n2", "n1"]
    active = await db.run(db.store.tokens.list(active=True))
    assert [row.name for row in active] == ["n4", "n3", "n2"]
    assert all(Scope.READ in row.grant.scopes for row in active)


@pytest.mark.parametrize("name", ["", "x" * 401])
async def test_a_name_that_cannot_be_kept_is_refused(db: Database, name: str) -> None:
    with pytest.raises(InvalidValue):
        await db.run(db.store.tokens.create(new(name=name), BY))
