"""The schema as this release has it, read from `schema.sql`: each thing by its name, with the SQL
that makes it."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import resources

from tenure._store.postgres.statements import in_schema

_TABLE = re.compile(r"CREATE TABLE /\*schema\.\*/(\w+) \(\n(.*?)\n\)(.*)\Z", re.DOTALL)
_INDEX = re.compile(r"CREATE (?:UNIQUE )?INDEX (\w+)\s+ON /\*schema\.\*/(\w+) ", re.DOTALL)
_SEQUENCE = re.compile(r"CREATE SEQUENCE /\*schema\.\*/(\w+)")
_OWNED = re.compile(r"ALTER SEQUENCE /\*schema\.\*/\w+ OWNED BY /\*schema\.\*/(\w+)\.")
_ELEMENT = re.compile(r"^    (?=[a-z_A-Z])", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Table:
    """A table: the statement that makes it, its columns and constraints by name."""

    sql: str
    partitioned: bool
    columns: Mapping[str, str]
    constraints: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Index:
    """An index that is no constraint's, and the table that it is of."""

    table: str
    sql: str


@dataclass(frozen=True, slots=True)
class Drawing:
    """All of it, for one schema."""

    tables: dict[str, Table] = field(default_factory=dict)
    indexes: dict[str, Index] = field(default_factory=dict)
    sequences: dict[str, str] = field(default_factory=dict)


@cache
def drawing(schema: str) -> Drawing:
    """The schema of this release under this name."""
    drawn = Drawing()
    for text in _statements((resources.files(__package__) / "schema.sql").read_text()):
        sql = " ".join(in_schema(text, schema).split())
        if found := _TABLE.match(text):
            name, body, rest = found.groups()
            columns, constraints = _elements(in_schema(body, schema))
            drawn.tables[name] = Table(sql, "PARTITION BY" in rest, columns, constraints)
        elif found := _INDEX.match(text):
            drawn.indexes[found[1]] = Index(found[2], sql)
        elif found := _SEQUENCE.match(text):
            drawn.sequences[found[1]] = sql
        elif found := _OWNED.match(text):
            owner = drawn.tables[found[1]]
            drawn.tables[found[1]] = replace(owner, sql=f"{owner.sql}; {sql}")
    return drawn


def _statements(text: str) -> Iterator[str]:
    plain = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("--"))
    return (part.strip() for part in re.split(r";\s*$", plain, flags=re.MULTILINE) if part.strip())


def _elements(body: str) -> tuple[dict[str, str], dict[str, str]]:
    columns: dict[str, str] = {}
    constraints: dict[str, str] = {}
    for element in _ELEMENT.split(body)[1:]:
        words = " ".join(element.split()).removesuffix(",")
        if words.startswith("CONSTRAINT "):
            constraints[words.split()[1]] = words
        else:
            columns[words.split()[0]] = words
    return columns, constraints
