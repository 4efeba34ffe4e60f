"""The .sql files: loaded once, their schema filled in, their parameters put in order."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import resources

from tenure.errors import InvalidValue

DEFAULT_SCHEMA = "tenure"
_SCHEMA = re.compile(r"[a-z_][a-z0-9_]{0,47}")
_PARAM = re.compile(r"\$\d+ (\w+)")


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

    def arguments(self, params: Mapping[str, object]) -> list[object]:
        """The parameters in the order the text wants them; a missing or unknown one is a defect."""
        if params.keys() != self._named:
            raise AssertionError(f"{self.name} takes {self.params}, got {tuple(params)}")
        return [params[name] for name in self.params]


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
    return Statement(name, f"/* tenure:{name} */ {in_schema(text, schema)}", params)
