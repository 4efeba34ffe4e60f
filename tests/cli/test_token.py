"""`tenure token`: a secret is printed once, and nowhere else."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tenure._model.access import Scope
from tenure._rules import access
from tenure.cli.errors import Exit
from tenure.cli.token import ScopeName

if TYPE_CHECKING:
    from tests.cli.conftest import Command


def test_a_token_is_made_listed_and_revoked(tenure: Command) -> None:
    made = tenure("token", "create", "ci", "--scope", "read", "--scope", "enqueue", "-q", "mail.*")
    assert made.code == Exit.DONE
    secret = made.out.strip()
    assert access.is_whole(secret)
    assert secret not in made.err

    listed = tenure("token", "list")
    assert listed.code == Exit.DONE
    assert secret not in listed.out
    for word in ("ci", access.hint(secret), "active", "enqueue,read", "mail.*"):
        assert word in listed.out

    assert tenure("token", "revoke", 1, "--reason", "leaked", "--by", "ana").code == Exit.DONE
    assert tenure("token", "list", "--active", "--json").json == {"tokens": [], "next": None}
    [row] = tenure("token", "list", "--json").json["tokens"]
    assert (row["state"], row["revoked_by"]) == ("revoked", "ana")
    assert row["grant"] == {"scopes": ["enqueue", "read"], "queues": ["mail.*"]}


def test_for_programs_the_secret_is_in_the_document(tenure: Command) -> None:
    made = tenure("token", "create", "ci", "--scope", "admin", "--expires-in", "90d", "--json")
    assert access.is_whole(made.json["secret"])
    assert made.json["token"]["expires_at"] is not None


def test_what_was_not_revoked_is_said(tenure: Command) -> None:
    nothing = tenure("token", "revoke", 4711)
    assert nothing.code == Exit.NOT_FOUND
    assert nothing.told[0] == "no token was revoked"
    tenure("token", "create", "ci", "--scope", "read")
    assert tenure("token", "revoke", 1, 4711, "--json").code == Exit.PARTIAL


def test_what_is_no_scope_or_no_pattern_is_a_mistake_of_usage(tenure: Command) -> None:
    assert tenure("token", "create", "ci", "--scope", "write").code == Exit.USAGE
    assert tenure("token", "create", "ci").code == Exit.USAGE
    wrong = tenure("token", "create", "ci", "--scope", "read", "-q", "*mail")
    assert wrong.code == Exit.USAGE
    assert "is no pattern of queues" in wrong.told[1]


def test_the_scopes_are_those_there_are() -> None:
    assert [str(name) for name in ScopeName] == [str(scope) for scope in Scope]


def test_what_must_not_be_shown_is_not_printed(tenure: Command) -> None:
    tenure("job", "enqueue", "login", "--args", '{"password": "geheim", "to": "Ada"}')
    for shown in (
        tenure("job", "show", 1),
        tenure("job", "show", 1, "--json"),
        tenure("job", "list", "--json"),
    ):
        assert shown.code == Exit.DONE
        assert "geheim" not in shown.out
        assert "redacted" in shown.out
        assert "Ada" in shown.out
