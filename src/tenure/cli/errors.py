"""Command errors and exit codes."""

import re
from collections.abc import Mapping
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
    """Exit codes. `MEANINGS` explains each one."""

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


MEANINGS: Mapping[Exit, str] = {
    Exit.DONE: "Done.",
    Exit.FAILED: "Not done, or a problem was found.",
    Exit.USAGE: "The command line, a value or the configuration is wrong.",
    Exit.NOT_FOUND: "The job, queue, worker, schedule, operation or token does not exist.",
    Exit.NOT_ALLOWED: "The database role lacks a privilege.",
    Exit.CONFLICT: "Another job holds the key, or another transaction was in the way.",
    Exit.UNREACHABLE: "The database did not answer, or its answer was lost.",
    Exit.PARTIAL: "Done for some of the jobs, not for all.",
    Exit.SCHEMA: "The schema does not match this release.",
    Exit.INTERRUPTED: "Stopped by Ctrl-C or a signal.",
}


_FORBIDDEN = "42501"
_TOO_SLOW = "57014"
_HIDDEN = "…"


class CommandError(Exception):
    """A command failed: what, why, and what to do."""

    def __init__(self, what: str, why: str, todo: str, code: Exit = Exit.FAILED) -> None:
        super().__init__(what)
        self.what = what
        self.why = why
        self.todo = todo
        self.code = code

    def print(self) -> Exit:
        """Print the error in three lines, and return the exit code."""
        print_error(self.what, self.why, self.todo)
        return self.code


class _ErrorKind(NamedTuple):
    error: type[TenureError]
    code: Exit
    what: str
    todo: str


# The first match wins, so subclasses come first.
_KINDS = (
    _ErrorKind(
        SchemaError, Exit.SCHEMA, "the schema does not match this release", "see: tenure db status"
    ),
    _ErrorKind(
        OutcomeUnknown,
        Exit.UNREACHABLE,
        "the outcome is unknown",
        "check whether it was done; with a --key it is safe to run it again",
    ),
    _ErrorKind(Unreachable, Exit.UNREACHABLE, "the database did not answer", "try again later"),
    _ErrorKind(
        QueryFailed, Exit.FAILED, "the database refused a statement", "see the server's log"
    ),
    _ErrorKind(ConfigError, Exit.USAGE, "a setting is missing or wrong", "see: tenure --help"),
    _ErrorKind(InvalidValue, Exit.USAGE, "a value is not valid", "change it"),
    _ErrorKind(PayloadError, Exit.USAGE, "the arguments cannot be stored", "change them"),
    _ErrorKind(TenureError, Exit.FAILED, "the command failed", "see: tenure --help"),
)


def failure(error: TenureError, *, url: str | None = None) -> CommandError:
    """Return the error to print, without the password in `url`."""
    kind = next(kind for kind in _KINDS if isinstance(error, kind.error))
    what, code, todo = kind.what, kind.code, kind.todo
    why, remedy = str(error), ""
    if isinstance(error, QueryFailed):
        if error.sqlstate == _FORBIDDEN:
            what, code = "the database role lacks a privilege", Exit.NOT_ALLOWED
            todo = "connect as the owner of the schema, or grant the privilege: tenure db roles"
        elif error.sqlstate == _TOO_SLOW:
            what, todo = "the query took too long", "request less at once"
        elif error.is_conflict:
            what, code = "another transaction was in the way", Exit.CONFLICT
            todo = "run it again"
        elif error.is_temporary:
            what, code = "the database cannot do this now", Exit.UNREACHABLE
            todo = "see the server's log, and try again later"
    else:
        # The fix follows the last semicolon in a message.
        why, _, remedy = why.rpartition("; ") if "; " in why else (why, "", "")
    return CommandError(what, hidden(why, url), hidden(remedy or todo, url), code)


def hidden(text: str, url: str | None = None) -> str:
    """Remove passwords: those in URLs, and this URL's password anywhere."""
    for secret in _secrets(url or ""):
        # Parts of it too: a parser may have quoted one as something else.
        text = re.sub(rf"(?<!\w){re.escape(secret)}(?!\w)", _HIDDEN, text)
    text = re.sub(r"(\w+://[^\s:@/]*):[^\s]*@", rf"\1:{_HIDDEN}@", text)
    return re.sub(r"(?i)(password\s*=\s*)('[^']*'|\S+)", rf"\1{_HIDDEN}", text)


def _secrets(url: str) -> list[str]:
    """Return the password in a URL and its parts, as written and decoded, longest first."""
    found = re.findall(r"://[^:@/]*:(.*)@", url)
    found += [text.strip("'") for text in re.findall(r"password\s*=\s*('[^']*'|[^\s&]+)", url)]
    parts = {part for text in found for part in (text, *re.split(r"[@:/?#]", text))}
    return sorted({p for part in parts for p in (part, unquote(part)) if p}, key=len, reverse=True)
