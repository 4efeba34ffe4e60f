"""How the processes of a worker, a scheduler and a server log: to stderr, as text or as JSON, and
without what can be known as a secret.

`log_capture` adds the job's fields to what a handler logs.
"""

import json
import logging
from datetime import UTC, datetime
from typing import Any

from tenure._log import write_to_stderr
from tenure._rules.redaction import Redactor

# What Python itself puts into a record; all else in it is somebody's field.
_PYTHONS = frozenset(
    {*vars(logging.LogRecord("", 0, "", 0, "", None, None)), "message", "asctime", "taskName"}
)
_TEXT = "%(asctime)s %(levelname)s %(message)s"
# The fence is called a token too, and is none that opens anything.
_OURS = frozenset({"job", "attempt", "token", "queue", "task"})
_HIDING = Redactor()


def configure_logging(level: str, form: str = "text") -> None:
    """Have this process log to stderr, from this level on, in this form. No log call waits:
    while stderr takes no more, records are dropped and counted."""
    write_to_stderr(level.upper(), JsonFormatter() if form == "json" else TextFormatter(_TEXT))


class TextFormatter(logging.Formatter):
    """A record as people read it."""

    def format(self, record: logging.LogRecord) -> str:
        return _HIDING.text(super().format(record))


class JsonFormatter(logging.Formatter):
    """A record as one JSON object in one line, with all of its fields."""

    def format(self, record: logging.LogRecord) -> str:
        """The line; a field that is no JSON is there as its text."""
        fields: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": _HIDING.text(record.getMessage()),
        }
        given = {n: v for n, v in vars(record).items() if n not in _PYTHONS and n not in fields}
        fields |= {name: given.pop(name) for name in _OURS & given.keys()}
        if record.exc_info and record.exc_info[0] is not None:
            given["exception"] = self.formatException(record.exc_info)
        if record.stack_info:
            given["stack"] = self.formatStack(record.stack_info)
        extra = _HIDING.value(given)
        try:
            return _line(fields | extra)
        except (TypeError, ValueError, RecursionError):
            return _line(fields | {name: _as_text(value) for name, value in extra.items()})


def _line(fields: dict[str, Any]) -> str:
    return json.dumps(fields, ensure_ascii=False, allow_nan=False, default=_as_text)


def _as_text(value: object) -> str:
    return _HIDING.text(str(value))
