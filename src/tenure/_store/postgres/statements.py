"""The statements from the .sql files, their parameters, and the base class for parts of the store.

Every parameter is sent as text and cast in the statement. Each statement therefore has only one
prepared form, regardless of the values, and large arrays are cheap to write.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from enum import Enum
from functools import cache
from importlib import resources
from typing import TypeVar
from uuid import UUID

from tenure._model.audit import By
from tenure._model.ids import Json
from tenure._store.steps import Op, Query, Rows
from tenure.errors import InvalidValue, QueryFailed

T = TypeVar("T")
Clock = Callable[[], datetime]
DEFAULT_SCHEMA = "tenure"
_SCHEMA = re.compile(r"[a-z_][a-z0-9_]{0,47}")
_PARAM = re.compile(r"\$\d+ (\w+)")
_INCLUDE = re.compile(r" */\*include (\w+)\*/\n")


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement's text, and the names of its parameters in order."""

    name: str
    text: str
    params: tuple[str, ...]
    encoded: bytes = field(init=False, repr=False)
    _named: frozenset[str] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "encoded", self.text.encode())
        object.__setattr__(self, "_named", frozenset(self.params))

    def arguments(self, params: Mapping[str, object]) -> list[str | None]:
        """Return the parameters as literals in order. A missing or unknown one is a bug."""
        if params.keys() != self._named:
            raise AssertionError(f"{self.name} takes {self.params}, got {tuple(params)}")
        return [literal(params[name]) for name in self.params]


def check_schema(schema: str) -> str:
    """Return the schema name if it needs no quoting."""
    if not _SCHEMA.fullmatch(schema):
        raise InvalidValue(
            f"schema must be 1 to 48 lower-case letters, digits and _, got {schema!r}"
        )
    return schema


def in_schema(text: str, schema: str) -> str:
    return text.replace("/*schema.*/", f"{check_schema(schema)}.")


def with_includes(text: str) -> str:
    """Replace each `/*include name*/` with the lines of `sql/include/name.sql`."""
    return _INCLUDE.sub(lambda mark: _included(mark[1]), text)


@cache
def _included(name: str) -> str:
    text = (resources.files(__package__) / "sql" / "include" / f"{name}.sql").read_text()
    return "".join(line for line in text.splitlines(True) if not line.startswith("--"))


@cache
def statements(schema: str) -> Mapping[str, Statement]:
    loaded = {}
    for file in (resources.files(__package__) / "sql").iterdir():
        name, _, kind = file.name.partition(".")
        if kind == "sql":
            loaded[name] = parse(name, file.read_text(), schema)
    return loaded


def parse(name: str, text: str, schema: str) -> Statement:
    """Parse a statement from its file. The first line names the parameters, if any."""
    params = tuple(_PARAM.findall(text.split("\n", 1)[0]))
    whole = in_schema(with_includes(text), schema)
    return Statement(name, f"/* tenure:{name} */ {whole}", params)


class Jsonb:
    """A value to send as JSON. A plain list would be sent as an array."""

    __slots__ = ("value",)

    def __init__(self, value: object) -> None:
        self.value = value


def literal(value: object) -> str | None:
    """Return the value as text that PostgreSQL casts to the parameter's type."""
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
    """Return the interval in microseconds.

    This is exact and avoids days, whose length depends on the time zone.
    """
    return f"{value // timedelta(microseconds=1)} microseconds"


def _elements(values: Sequence[object]) -> Iterable[str]:
    """Return an array's elements.

    If all values are equal, as in most batches of completions, convert the value only once.
    """
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


class Statements:
    """One schema's statements. Tests pass a `clock`. By default, the database's time is used."""

    def __init__(self, schema: str = DEFAULT_SCHEMA, *, clock: Clock | None = None) -> None:
        self.schema = schema
        self.by_name = statements(schema)
        self._clock = clock

    @property
    def has_own_clock(self) -> bool:
        return self._clock is not None

    def query(self, name: str, /, **params: object) -> Query:
        """Return a statement with its parameters, including the time if it takes one."""
        if "now" in self.by_name[name].params:
            params["now"] = self._clock() if self._clock else None
        return Query(name, params)


@dataclass(eq=False)
class QueryBase:
    """A part of the store. All parts share one `Statements`."""

    statements: Statements

    def __post_init__(self) -> None:
        self._query = self.statements.query
        self.schema = self.statements.schema
        # The wakeup channel, which carries queue names.
        self.channel = f"{self.schema}_wakeup"
        # The channel that carries the ids of ended jobs for which a caller is waiting.
        self.ended_channel = f"{self.schema}_ended"

    def _with_partition_fallback(self, make: Callable[[date | None], Op[T]]) -> Op[T]:
        """Write history to today's partition. If it's missing, retry with the newest one."""
        try:
            return (yield from make(None))
        except QueryFailed as error:
            if not error.is_missing_partition:
                raise
        rows = yield self._query("newest_partition")
        return (yield from make(rows[0]["day"]))

    def _within(self, name: str, /, **params: object) -> Query:
        return replace(self._query(name, **params), in_transaction=True)

    def _send(self, name: str, /, *, tuples: bool = False, **params: object) -> Op[Rows]:
        return (yield replace(self._query(name, **params), as_tuples=tuples))

    def _audit(
        self,
        by: By,
        action: str,
        targets: Sequence[str],
        *,
        before: Json = None,
        after: Json = None,
    ) -> Op[None]:
        changes = [(target, before, after) for target in targets]
        yield from self._audit_changes(by, action, changes)

    def _audit_changes(
        self, by: By, action: str, changes: Sequence[tuple[str, Json, Json]]
    ) -> Op[None]:
        """Record an action on several targets, each with its own values before and after."""
        if not changes:
            return
        row = {
            "actor": by.actor,
            "source": by.source,
            "action": action,
            "targets": [target for target, _, _ in changes],
            "reason": by.reason,
            "befores": [Jsonb(before) for _, before, _ in changes],
            "afters": [Jsonb(after) for _, _, after in changes],
            "address": by.address,
        }
        if self.statements.has_own_clock:
            yield self._query("audit_at", **row)
        else:
            yield self._query("audit", **row)
