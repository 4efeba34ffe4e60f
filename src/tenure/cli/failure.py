"""Errors as a person meets them: what, why, what to do, and an exit code. Never a password."""

import re
from typing import NamedTuple
from urllib.parse import unquote

from tenure.cli.exits import Exit
from tenure.cli.words import tell
from tenure.errors import (
    ConfigError,
    InvalidValue,
    OutcomeUnknown,
    PayloadError,
    QueryFailed,
    SchemaError,
    TenureError,
    Unreachable,
)

_FORBIDDEN = "42501"
_TOO_SLOW = "57014"
_HIDDEN = "…"


class Failure(Exception):
    """A command that cannot go on."""

    def __init__(self, what: str, why: str, todo: str, code: Exit = Exit.FAILED) -> None:
        super().__init__(what)
        self.what = what
        self.why = why
        self.todo = todo
        self.code = code

    def tell(self) -> Exit:
        """Say it in three lines, and answer with the exit code."""
        tell(self.what, self.why, self.todo)
        return self.code


class _Kind(NamedTuple):
    error: type[TenureError]
    code: Exit
    what: str
    todo: str


# The first that fits; the more special ones come first.
_KINDS = (
    _Kind(
        SchemaError, Exit.SCHEMA, "the schema does not fit this release", "see: tenure db status"
    ),
    _Kind(
        OutcomeUnknown,
        Exit.UNREACHABLE,
        "it may or may not have been done",
        "look whether it was; with a key it is safe to run it again",
    ),
    _Kind(Unreachable, Exit.UNREACHABLE, "the database did not answer", "try again later"),
    _Kind(QueryFailed, Exit.FAILED, "the database refused a statement", "see the server's log"),
    _Kind(ConfigError, Exit.USAGE, "a setting is missing or wrong", "see: tenure --help"),
    _Kind(InvalidValue, Exit.USAGE, "a value is not allowed", "change it"),
    _Kind(PayloadError, Exit.USAGE, "the arguments cannot be stored", "change them"),
    _Kind(TenureError, Exit.FAILED, "it could not be done", "see: tenure --help"),
)


def failure(error: TenureError, *, url: str | None = None) -> Failure:
    """What a person is told of an error. `url` is the database's, whose password is left out."""
    kind = next(kind for kind in _KINDS if isinstance(error, kind.error))
    what, code, todo = kind.what, kind.code, kind.todo
    why, remedy = str(error), ""
    if isinstance(error, QueryFailed):
        if error.sqlstate == _FORBIDDEN:
            what, code = "the database does not allow it", Exit.NOT_ALLOWED
            todo = "ask as the role that owns the schema, or let it grant the right"
        elif error.sqlstate == _TOO_SLOW:
            what, todo = "the database took too long", "ask for less at once"
        elif error.is_conflict:
            what, code = "somebody else was in the way", Exit.CONFLICT
            todo = "run it again"
        elif error.is_temporary:
            what, code = "the database cannot do it now", Exit.UNREACHABLE
            todo = "see the server's log, and try again later"
    else:
        # A message carries its remedy behind its last semicolon.
        why, _, remedy = why.rpartition("; ") if "; " in why else (why, "", "")
    return Failure(what, hidden(why, url), hidden(remedy or todo, url), code)


def hidden(text: str, url: str | None = None) -> str:
    """The text without passwords: those that stand in URLs, and the one of this URL anywhere."""
    for secret in _secrets(url or ""):
        # Also a part of it, quoted by a parser that took it for something else.
        text = re.sub(rf"(?<!\w){re.escape(secret)}(?!\w)", _HIDDEN, text)
    text = re.sub(r"(\w+://[^\s:@/]*):[^\s]*@", rf"\1:{_HIDDEN}@", text)
    return re.sub(r"(?i)(password\s*=\s*)('[^']*'|\S+)", rf"\1{_HIDDEN}", text)


def _secrets(url: str) -> list[str]:
    """The password in a URL and its parts, as they are and decoded, the longest first."""
    found = re.findall(r"://[^:@/]*:(.*)@", url)
    found += [text.strip("'") for text in re.findall(r"password\s*=\s*('[^']*'|[^\s&]+)", url)]
    parts = {part for text in found for part in (text, *re.split(r"[@:/?#]", text))}
    return sorted({p for part in parts for p in (part, unquote(part)) if p}, key=len, reverse=True)
