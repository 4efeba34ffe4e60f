"""Errors of commands, and exit codes."""

import re
from enum import IntEnum
from typing import NamedTuple
from urllib.parse import unquote

from tenure.cli.output import print_error
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


class Exit(IntEnum):
    """How a command ended. docs/reference/commands.md is this list in words."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    NOT_FOUND = 3
    NOT_ALLOWED = 4
    CONFLICT = 5
    UNREACHABLE = 6
    PARTIAL = 7
    SCHEMA = 8
    INTERRUPTED = 130


_FORBIDDEN = "42501"
_TOO_SLOW = "57014"
_HIDDEN = "…"


class CommandError(Exception):
    """A command that cannot go on."""

    def __init__(self, what: str, why: str, todo: str, code: Exit = Exit.FAILED) -> None:
        super().__init__(what)
        self.what = what
        self.why = why
        self.todo = todo
        self.code = code

    def print(self) -> Exit:
        """Say it in three lines, and answer with the exit code."""
        print_error(self.what, self.why, self.todo)
        return self.code


class _ErrorKind(NamedTuple):
    error: type[TenureError]
    code: Exit
    what: str
    todo: str


# The first that fits; the more special ones come first.
_KINDS = (
    _ErrorKind(
        SchemaError, Exit.SCHEMA, "the schema does not fit this release", "see: tenure db status"
    ),
    _ErrorKind(
        OutcomeUnknown,
        Exit.UNREACHABLE,
        "it may or may not have been done",
        "look whether it was; with a key it is safe to run it again",
    ),
    _ErrorKind(Unreachable, Exit.UNREACHABLE, "the database did not answer", "try again later"),
    _ErrorKind(
        QueryFailed, Exit.FAILED, "the database refused a statement", "see the server's log"
    ),
    _ErrorKind(ConfigError, Exit.USAGE, "a setting is missing or wrong", "see: tenure --help"),
    _ErrorKind(InvalidValue, Exit.USAGE, "a value is not allowed", "change it"),
    _ErrorKind(PayloadError, Exit.USAGE, "the arguments cannot be stored", "change them"),
    _ErrorKind(TenureError, Exit.FAILED, "it could not be done", "see: tenure --help"),
)


def failure(error: TenureError, *, url: str | None = None) -> CommandError:
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
    return CommandError(what, hidden(why, url), hidden(remedy or todo, url), code)


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
