"""A row of the audit as a page shows it: what it was done to, and what is different since."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from tenure.server.pages.words import brief
from tenure.server.shapes.installation import AuditOut

# Where a target of this kind is looked at.
_PLACES = {
    "job": "/jobs/{}",
    "queue": "/queues/{}",
    "schedule": "/schedules/{}",
    "operation": "/operations/{}",
    "worker": "/workers#w-{}",
    "setting": "/system#settings",
}
_ALL = "queue:*"


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing that is different; None where it was, or is, not there."""

    name: str
    was: str | None
    now: str | None


@dataclass(frozen=True, slots=True)
class Change:
    """A row of the audit, the page of its target if there is one, and what is different."""

    row: AuditOut
    place: str | None
    differences: Sequence[Difference]


def change(row: AuditOut) -> Change:
    """The row as it is shown. Who has paused something, and why, is not told twice."""
    told = {row.actor, row.reason} - {None}
    found = [one for one in differences(row.before, row.after) if one.now not in told]
    return Change(row, place(row.target), found)


def place(target: str) -> str | None:
    """The page of a target."""
    kind, _, name = target.partition(":")
    if target == _ALL:
        return "/queues"
    return _PLACES[kind].format(quote(name)) if kind in _PLACES and name else None


def differences(before: Any, after: Any) -> list[Difference]:
    """What is different: by name where both sides have names."""
    if before is None and after is None:
        return []
    if not isinstance(before or {}, dict) or not isinstance(after or {}, dict):
        return [Difference("", _told(before), _told(after))]
    was, now = before or {}, after or {}
    names = [*now, *(name for name in was if name not in now)]
    return [
        Difference(name, _told(was.get(name)), _told(now.get(name)))
        for name in names
        if was.get(name) != now.get(name)
    ]


def _told(value: Any) -> str | None:
    return None if value is None else brief(value)
