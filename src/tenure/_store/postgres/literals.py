"""Python values as PostgreSQL's text input.

Every parameter is sent as text of unknown type, and the casts in the .sql files say what it
is. So one statement has one prepared form whatever the values are (a NULL in an array, a
small integer), and arrays of a thousand rows are cheap to write.
"""

import json
from collections.abc import Iterable, Sequence
from datetime import date, datetime, timedelta
from enum import Enum
from uuid import UUID


class Jsonb:
    """A value to be sent as JSON, where a plain list would be an array."""

    __slots__ = ("value",)

    def __init__(self, value: object) -> None:
        self.value = value


def literal(value: object) -> str | None:
    """The value as text that PostgreSQL casts to what the statement wants."""
    if type(value) is str:
        return value
    match value:
        case None:
            return None
        case bool():
            return "t" if value else "f"
        case Enum():
            return str(value.value)
        case str():
            return value
        case int() | UUID():
            return str(value)
        case datetime() | date():
            return value.isoformat()
        case timedelta():
            return interval(value)
        case Jsonb():
            return json.dumps(value.value, ensure_ascii=False)
        case list() | tuple():
            return "{" + ",".join(_elements(value)) + "}"
        case _:
            raise TypeError(f"no literal for a {type(value).__name__}")


def interval(value: timedelta) -> str:
    """The duration in microseconds: exact, and free of days, whose length a zone can change."""
    return f"{value // timedelta(microseconds=1)} microseconds"


def _elements(values: Sequence[object]) -> Iterable[str]:
    """The elements of an array. What is the same for all, as most of a batch of completions is,
    is written once."""
    if values and values[0] is values[-1]:
        first = values[0]
        if isinstance(first, str | UUID | None) and values.count(first) == len(values):
            return [_element(first)] * len(values)
    return map(_element, values)


def _element(value: object) -> str:
    if type(value) is int:
        return str(value)
    text = literal(value)
    if text is None:
        return "NULL"
    if "\\" in text or '"' in text:
        text = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{text}"'
