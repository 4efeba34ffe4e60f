"""The terms of a selector's text: a field, a colon, and values with commas between them.

What is not understood is refused with its place. A value is not repeated unless it is a plain word:
it may be a secret.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tenure.errors import InvalidValue

MOST_VALUES = 100
QUOTED = 'quote a value with spaces, commas or quotes, as in error:"no \\"route\\""'
_WORD = re.compile(r"[A-Za-z_.]{1,20}")


@dataclass(frozen=True, slots=True)
class Value:
    """A value as it was read, and where."""

    at: int
    text: str


@dataclass(frozen=True, slots=True)
class Term:
    """A field and its values as they were read, and where it begins."""

    at: int
    name: str
    values: tuple[Value, ...]


def terms(text: str) -> Iterator[Term]:
    """The terms in their order. What has no field before it has no values either."""
    at = 0
    while at < len(text):
        if text[at].isspace():
            at += 1
            continue
        start = at
        while at < len(text) and text[at] not in ':"' and not text[at].isspace():
            at += 1
        name, values = text[start:at], list[Value]()
        while text[at : at + 1] == ("," if values else ":"):
            value, at = _value(text, at + 1)
            values.append(value)
        if len(values) > MOST_VALUES:
            raise refused(start, f"{name}: has {len(values)} values", f"give at most {MOST_VALUES}")
        if not values and text[at : at + 1] == '"':
            raise refused(at, "a quotation has no field before it", QUOTED)
        yield Term(start, name, tuple(values))


def _value(text: str, at: int) -> tuple[Value, int]:
    """The value that begins here, and where what follows it is."""
    if text[at : at + 1] == '"':
        return _quoted(text, at)
    end = at
    while end < len(text) and text[end] != "," and not text[end].isspace():
        if text[end] == '"':
            raise refused(end, "a quotation begins within a value", QUOTED)
        end += 1
    if end == at:
        raise refused(at, "a value is missing", f"write it behind the colon or comma; {QUOTED}")
    return Value(at, text[at:end]), end


def _quoted(text: str, at: int) -> tuple[Value, int]:
    said, end = list[str](), at + 1
    while text[end : end + 1] != '"':
        if text[end : end + 1] == "\\":
            end += 1
        if end >= len(text):
            raise refused(at, "a quotation does not end", QUOTED)
        said.append(text[end])
        end += 1
    end += 1
    if end < len(text) and text[end] != "," and not text[end].isspace():
        raise refused(end, "something stands right behind a quotation", QUOTED)
    if not said:
        raise refused(at, "a value is empty", "leave the field away, and any value matches")
    return Value(at, "".join(said)), end


def quoted(value: str) -> str:
    """A value as a term has it."""
    if any(char in ',"' or char.isspace() for char in value):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{escaped}"'
    return value


def shown(said: str) -> str:
    """What was read, if it is a plain word; else how long it is."""
    return f"'{said}'" if _WORD.fullmatch(said) else f"what stands there ({len(said)} characters)"


def refused(at: int, why: str, remedy: str) -> InvalidValue:
    """The error for what is not understood: where, why, and what to write."""
    return InvalidValue(f"the selector is not understood at character {at + 1}: {why}; {remedy}")
