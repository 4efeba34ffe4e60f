"""Access tokens as an operator makes them, and as the server lets them in."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from tenure._rules import access as rules
from tenure.admin import By, allows
from tenure.errors import InvalidValue, TokenRefused
from tenure.types import Scope, TokenState

if TYPE_CHECKING:
    from tenure.admin import Admin

ANA = By("ana", source="suite", reason="a trial")


def refused(admin: Admin, secret: str) -> str:
    with pytest.raises(TokenRefused) as error:
        admin.tokens.authenticate(secret)
    assert "tnr_" not in str(error.value)
    return error.value.why


def test_a_new_token_is_let_in_with_what_it_grants(admin: Admin) -> None:
    made = admin.tokens.create("ci", ANA, scopes=["read"], queues=["mail.*"])
    row = admin.tokens.authenticate(made.secret)
    assert (row.id, row.grant) == (made.token.id, made.token.grant)
    assert allows(row.grant, Scope.READ, "mail.eu")
    assert not allows(row.grant, Scope.ENQUEUE, "mail.eu")


async def test_both_faces_let_in(admin: Admin) -> None:
    made = await admin.tokens.acreate("ci", ANA, scopes=["admin"])
    assert (await admin.tokens.aauthenticate(made.secret)).id == made.token.id
    assert await admin.tokens.atouch([made.token.id, made.token.id]) == 1
    assert await admin.tokens.arevoke([made.token.id], ANA) == [True]
    [row] = await admin.tokens.alist()
    assert row.state is TokenState.REVOKED


def test_a_child_ends_with_its_parent(admin: Admin) -> None:
    parent = admin.tokens.create("parent", ANA, scopes=["admin"], expires_in=600).token
    child = admin.tokens.create("c", ANA, scopes=["read"], expires_in=None, parent=parent.id)
    assert child.token.expires_at == parent.expires_at


def test_a_revoked_token_takes_its_descendants_with_it(admin: Admin) -> None:
    parent = admin.tokens.create("parent", ANA, scopes=["admin"]).token
    child = admin.tokens.create("child", ANA, scopes=["admin"], parent=parent.id).token
    grandchild = admin.tokens.create("grandchild", ANA, scopes=["read"], parent=child.id)
    admin.tokens.revoke([parent.id], ANA)
    assert refused(admin, grandchild.secret) == "revoked"


def test_no_two_secrets_are_the_same(admin: Admin) -> None:
    made = {admin.tokens.create("ci", ANA, scopes=["read"]).secret for _ in range(5)}
    assert len(made) == 5


def test_what_is_refused_says_why(admin: Admin) -> None:
    made = admin.tokens.create("ci", ANA, scopes=["read"])
    late = admin.tokens.create("late", ANA, scopes=["read"], expires_in=0.000001)
    assert refused(admin, "") == "malformed"
    assert refused(admin, made.secret[:-1] + "_") == "malformed"
    assert refused(admin, rules.secret(bytes(32))) == "unknown"
    assert refused(admin, late.secret) == "expired"
    admin.tokens.revoke([made.token.id], ANA)
    assert refused(admin, made.secret) == "revoked"


def test_a_mistyped_token_asks_no_database(admin: Admin) -> None:
    with pytest.raises(TokenRefused):
        type(admin.tokens).authenticate.describe(admin.tokens, "tnr_mistyped")


def test_a_secret_is_not_in_what_is_printed_of_it(admin: Admin) -> None:
    made = admin.tokens.create("ci", ANA, scopes=["read"])
    assert made.secret not in repr(made)
    assert made.secret not in repr(admin.tokens.list())
    assert made.secret not in repr(admin.audit.list(f"token:{made.token.id}"))


@pytest.mark.parametrize("expires_in", [0, -1, timedelta(days=40_000)])
def test_a_life_that_cannot_be_is_refused(admin: Admin, expires_in: timedelta) -> None:
    with pytest.raises(InvalidValue):
        admin.tokens.create("ci", ANA, scopes=["read"], expires_in=expires_in)


def test_a_page_that_is_too_long_is_refused(admin: Admin) -> None:
    with pytest.raises(InvalidValue):
        admin.tokens.list(count=1001)
