"""`tenure token`: a secret is printed once, and nowhere else."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tenure._rules import access
from tenure.cli.errors import Exit

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
    assert row["grant"] == {
        "scopes": ["enqueue", "read"],
        "queues": ["mail.*"],
        "tasks": ["*"],
    }
    assert "page_key" not in row


def test_tasks_and_quotas_are_set_and_shown(tenure: Command) -> None:
    tenure(
        "token", "create", "a", "--scope", "enqueue", "--task", "mail.*", "--quota", "sessions=5"
    )
    assert tenure("token", "quota", 1, "--quota", "live_jobs=10", "--by", "ana").code == Exit.DONE
    [row] = tenure("token", "list", "--json").json["tokens"]
    assert (row["grant"]["tasks"], row["quotas"]) == (["mail.*"], {"live_jobs": 10})
    assert "live_jobs=10" in tenure("token", "list").out
    for wrong in ("live_jobs", "live_jobs=many", "none=1", "live_jobs=-1"):
        assert tenure("token", "quota", 1, "--quota", wrong).code == Exit.USAGE
    assert tenure("token", "quota", 4711).code == Exit.NOT_FOUND
    assert tenure("queue", "quota", "mail", "--quota", "enqueue_rate=0.5").code == Exit.DONE
    assert "enqueue_rate=0.5" in tenure("queue", "show", "mail").out
    assert tenure("queue", "quota", "*").code == Exit.USAGE


def test_a_key_is_freed_once_its_job_has_ended(tenure: Command) -> None:
    enqueue = ("job", "enqueue", "charge", "--key", "invoice-7", "--key-for", "1d")
    tenure(*enqueue)
    assert tenure("key", "free", "charge", "invoice-7").code == Exit.CONFLICT
    tenure("job", "cancel", 1)
    assert tenure("key", "free", "charge", "invoice-7", "--json").json == {"holder": 1}
    assert tenure("key", "free", "charge", "invoice-7").code == Exit.NOT_FOUND
    assert tenure(*enqueue, "--json").json["created"] is True


def test_a_key_kept_forever_is_taken_until_it_is_freed(tenure: Command) -> None:
    """Shows R17."""
    enqueue = ("job", "enqueue", "charge", "--key", "invoice-7", "--key-for", "forever", "--json")
    assert tenure(*enqueue).json == {"id": 1, "created": True}
    tenure("job", "cancel", 1)
    assert tenure("db", "maintain").code == Exit.DONE
    assert tenure(*enqueue).json == {"id": 1, "created": False}
    assert tenure("key", "free", "charge", "invoice-7").code == Exit.DONE
    assert tenure(*enqueue).json["created"] is True


def test_for_programs_the_secret_is_in_the_document(tenure: Command) -> None:
    made = tenure("token", "create", "ci", "--scope", "admin", "--expires-in", "90d", "--json")
    assert access.is_whole(made.json["secret"])
    assert made.json["token"]["expires_at"] is not None


def test_failed_revokes_are_reported(tenure: Command) -> None:
    nothing = tenure("token", "revoke", 4711)
    assert nothing.code == Exit.NOT_FOUND
    assert nothing.error[0] == "no token was revoked"
    tenure("token", "create", "ci", "--scope", "read")
    assert tenure("token", "revoke", 1, 4711, "--json").code == Exit.PARTIAL


def test_invalid_scope_or_pattern_is_a_usage_error(tenure: Command) -> None:
    assert tenure("token", "create", "ci", "--scope", "write").code == Exit.USAGE
    assert tenure("token", "create", "ci").code == Exit.USAGE
    wrong = tenure("token", "create", "ci", "--scope", "read", "-q", "*mail")
    assert wrong.code == Exit.USAGE
    assert "a queue pattern must be" in wrong.error[1]


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
