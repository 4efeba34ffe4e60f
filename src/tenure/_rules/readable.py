"""Check whether stored values can be read.

A row may have been written by a program that ignores Tenure's rules.
"""

import math
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from tenure._model.ids import Json
from tenure._rules.payload import check_json
from tenure.errors import PayloadError

# The only key in the placeholder that is shown in place of an unreadable value.
UNREADABLE = "unreadable"
_SCALARS = frozenset({str, int, bool, type(None)})
_LONGEST = 86_400 * 999_999_999


class UnreadableJson(dict[str, Json]):
    """A placeholder for JSON that can't be read. Wherever it is shown, it says why."""

    def __init__(self, why: str) -> None:
        super().__init__({UNREADABLE: why})

    @property
    def why(self) -> str:
        return str(self[UNREADABLE])


class UnreadableTime(datetime):
    """A placeholder for a time that Python can't represent: its minimum or maximum."""


def shown(value: Json, what: str) -> Json:
    """Return a stored value, or why it can't be read."""
    why = _json_problem(value, what)
    return value if why is None else UnreadableJson(why)


def shown_meta(meta: Json) -> Json:
    """Return a job's meta fields, or why they can't be read."""
    why = meta_problem(meta)
    return meta if why is None else UnreadableJson(why)


def job_problem(
    args: Json, meta: Json, cursor: Json, progress: Json, *times: datetime
) -> str | None:
    """Return why a claimed job can't be read, or None.

    The check is fast for flat arguments, which most jobs have.
    """
    if type(args) is not dict:
        return _json_problem(args, "args") or f"args must be an object, got {_kind(args)}"
    if not all(type(value) in _SCALARS for value in args.values()) and (
        why := _json_problem(args, "args")
    ):
        return why
    if meta is not None and (why := meta_problem(meta)):
        return why
    for name, value in (("the cursor", cursor), ("the progress", progress)):
        if value is not None and (why := _json_problem(value, name)):
            return why
    if any(type(at) is UnreadableTime for at in times):
        return "its times must be in the years 1 to 9999"
    return None


def meta_problem(meta: Json) -> str | None:
    """Return why a job's meta fields can't be read, or None."""
    if meta is None:
        return None
    if why := _json_problem(meta, "meta"):
        return why
    if not isinstance(meta, dict):
        return f"meta must be an object, got {_kind(meta)}"
    for name, fits, rule in (
        ("tags", _is_tags, "a list of strings"),
        ("timeout", _is_seconds, "a number of seconds"),
        ("expires_in", _is_seconds, "a number of seconds"),
        ("fields", lambda value: isinstance(value, dict), "an object"),
        ("schedule", lambda value: isinstance(value, str), "a string"),
        ("tick_at", _is_time, "a time"),
    ):
        if (value := meta.get(name)) is not None and not fits(value):
            return f"{name} in meta must be {rule}, got {_kind(value)}"
    return None


def worker_meta(meta: Json) -> Mapping[str, Any] | None:
    """Return what a worker reported about itself, without values of the wrong type."""
    if not isinstance(meta, dict) or _json_problem(meta, "meta"):
        return None
    kept = dict(meta)
    if not _is_tags(meta.get("unknown_tasks", [])):
        del kept["unknown_tasks"]
    if not isinstance(meta.get("memory", 0), int | float):
        del kept["memory"]
    return kept


def _json_problem(value: Json, what: str) -> str | None:
    if type(value) is UnreadableJson:
        return f"{what} cannot be read: {value.why}"
    if type(value) in _SCALARS:
        return None
    try:
        check_json(value, what)
    except PayloadError as error:
        return str(error).partition(";")[0]
    return None


def _is_tags(value: Json) -> bool:
    return isinstance(value, list) and all(isinstance(tag, str) for tag in value)


def _is_seconds(value: Json) -> bool:
    return (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and math.isfinite(value)
        and 0 <= value <= _LONGEST
    )


def _is_time(value: Json) -> bool:
    try:
        at = datetime.fromisoformat(value)
    except (TypeError, ValueError):
        return False
    return at.tzinfo is not None and 1 < at.year < 9999


def _kind(value: Json) -> str:
    """Return the JSON name of a value's type. The value itself may be secret."""
    match value:
        case dict():
            return "an object"
        case list():
            return "a list"
        case str():
            return "a string"
        case None | bool():
            return {None: "null", True: "true", False: "false"}[value]
        case _:
            return f"the number {value}"[:60]
