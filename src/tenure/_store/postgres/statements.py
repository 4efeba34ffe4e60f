"""The .sql files as statements, parameters as literals, and the base of the store's parts.

Every parameter is sent as text of unknown type, and the casts in the .sql files say what it
is. So one statement has one prepared form whatever the values are (a NULL in an array, a
small integer), and arrays of a thousand rows are cheap to write.
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
    """One statement's text, and the names of its parameters in order."""

    name: str
    text: str
    params: tuple[str, ...]
    encoded: bytes = field(init=False, repr=False)
    _named: frozenset[str] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "encoded", self.text.encode())
        object.__setattr__(self, "_named", frozenset(self.params))

    def arguments(self, params: Mapping[str, object]) -> list[str | None]:
        """The parameters as literals, in the order the text wants them; a missing or unknown one is
        a defect."""
        if params.keys() != self._named:
            raise AssertionError(f"{self.name} takes {self.params}, got {tuple(params)}")
        return [literal(params[name]) for name in self.params]


def check_schema(schema: str) -> str:
    """The schema's name, if it is one that needs no quoting anywhere."""
    if not _SCHEMA.fullmatch(schema):
        raise InvalidValue(
            f"{schema!r} cannot name the schema: lower-case letters, digits and _, at most 48"
        )
    return schema


def in_schema(text: str, schema: str) -> str:
    """The text with its `/*schema.*/` marks filled in."""
    return text.replace("/*schema.*/", f"{check_schema(schema)}.")


def with_includes(text: str) -> str:
    """Replace each `/*include name*/` line by the lines of `sql/include/name.sql`, without its
    header. They name parameters by the numbers that all statements give them."""
    return _INCLUDE.sub(lambda mark: _included(mark[1]), text)


@cache
def _included(name: str) -> str:
    text = (resources.files(__package__) / "sql" / "include" / f"{name}.sql").read_text()
    return "".join(line for line in text.splitlines(True) if not line.startswith("--"))


@cache
def statements(schema: str) -> Mapping[str, Statement]:
    """Every statement of the store by its name, for one schema."""
    loaded = {}
    for file in (resources.files(__package__) / "sql").iterdir():
        name, _, kind = file.name.partition(".")
        if kind == "sql":
            loaded[name] = parse(name, file.read_text(), schema)
    return loaded


def parse(name: str, text: str, schema: str) -> Statement:
    """A statement from its file's text. The first line names the parameters, if there are any."""
    params = tuple(_PARAM.findall(text.split("\n", 1)[0]))
    whole = in_schema(with_includes(text), schema)
    return Statement(name, f"/* tenure:{name} */ {whole}", params)


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


class Statements:
    """The statements of one schema. Tests give a `clock`; without it time is the database's."""

    def __init__(self, schema: str = DEFAULT_SCHEMA, *, clock: Clock | None = None) -> None:
        self.schema = schema
        self.by_name = statements(schema)
        self._clock = clock

    def query(self, name: str, /, **params: object) -> Query:
        """A statement with its parameters, and with the time, if it asks for that."""
        if "now" in self.by_name[name].params:
            params["now"] = self._clock() if self._clock else None
        return Query(name, params)


@dataclass(eq=False)
class QueryBase:
    """A part of the store. All parts share one `Statements`; a part that needs another is given
    it."""

    statements: Statements

    def __post_init__(self) -> None:
        self._query = self.statements.query
        self.schema = self.statements.schema
        # The channel on which a wakeup carries a queue's name.
        self.channel = f"{self.schema}_wakeup"
        # The channel that carries the id of a job that has ended and is waited for.
        self.ended_channel = f"{self.schema}_ended"

    def _with_partition_fallback(self, make: Callable[[date | None], Op[T]]) -> Op[T]:
        """Perform what files history under today, or under the newest day if today is missing.

        A whole transaction is made again: the one that met the missing day is over.
        """
        try:
            return (yield from make(None))
        except QueryFailed as error:
            if not error.is_missing_partition:
                raise
        rows = yield self._query("newest_partition")
        return (yield from make(rows[0]["day"]))

    def _within(self, name: str, /, **params: object) -> Query:
        """A query that means something only inside a transaction."""
        return replace(self._query(name, **params), in_transaction=True)

    def _send(self, name: str, /, *, tuples: bool = False, **params: object) -> Op[Rows]:
        """One statement as an operation."""
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
        if targets:
            yield self._query(
                "audit",
                actor=by.actor,
                source=by.source,
                action=action,
                targets=list(targets),
                reason=by.reason,
                befores=[Jsonb(before)] * len(targets),
                afters=[Jsonb(after)] * len(targets),
            )
