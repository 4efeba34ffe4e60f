"""The catalogue of all bugs, and how one is applied: in memory, in this process alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from proof.mutations.of_jobs import OF_JOBS
from proof.mutations.of_leases import OF_LEASES
from proof.mutations.of_losses import OF_LOSSES
from proof.mutations.of_schedules import OF_SCHEDULES
from tenure._store.postgres import statements

if TYPE_CHECKING:
    from proof.mutations.bug import Bug

BUGS = (*OF_LEASES, *OF_JOBS, *OF_LOSSES, *OF_SCHEDULES)


def named(name: str) -> Bug:
    """The bug of this name."""
    for bug in BUGS:
        if bug.name == name:
            return bug
    raise SystemExit(f"no bug {name}; there are: {', '.join(bug.name for bug in BUGS)}")


def apply(name: str) -> Bug:
    """Let everything that is made from now on in this process have this bug."""
    bug = named(name)
    sound = statements.parse

    def mutated(name: str, text: str, schema: str) -> statements.Statement:
        for edit in bug.edits:
            if edit.statement == name:
                if edit.old not in text:
                    raise AssertionError(f"{bug.name}: {name}.sql no longer has {edit.old!r}")
                text = text.replace(edit.old, edit.new)
        return sound(name, text, schema)

    statements.parse = mutated
    statements.statements.cache_clear()
    if bug.patch:
        bug.patch()
    return bug
