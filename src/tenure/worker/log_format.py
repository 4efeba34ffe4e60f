"""Log formats for workers, schedulers and servers: text or JSON on stderr, with secrets redacted.

`log_capture` adds the job's fields to records that a handler logs.
"""

import json
import logging
from datetime import UTC, datetime
from typing import Any

from tenure._log import write_to_stderr
from tenure._rules.redaction import Redactor

# Attributes that Python sets on every record. Anything else is an extra field.
_STANDARD_FIELDS = frozenset(
    {*vars(logging.LogRecord("", 0, "", 0, "", None, None)), "message", "asctime", "taskName"}
)
_TEXT = "%(asctime)s %(levelname)s %(message)s"
# Not redacted: the fencing token is not a secret.
_JOB_FIELDS = frozenset({"job", "attempt", "token", "queue", "task"})
_REDACTOR = Redactor()


def configure_logging(level: str, form: str = "text") -> None:
    """Log to stderr at this level and above. Drop excess records, so log calls never wait."""
    write_to_stderr(level.upper(), JsonFormatter() if form == "json" else TextFormatter(_TEXT))


class TextFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return _REDACTOR.text(super().format(record))


class JsonFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        """Format the line; a field that JSON can't represent becomes text."""
        fields: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": _REDACTOR.text(record.getMessage()),
        }
        given = {
            n: v for n, v in vars(record).items() if n not in _STANDARD_FIELDS and n not in fields
        }
        fields |= {name: given.pop(name) for name in _JOB_FIELDS & given.keys()}
        if record.exc_info and record.exc_info[0] is not None:
            given["exception"] = self.formatException(record.exc_info)
        if record.stack_info:
            given["stack"] = self.formatStack(record.stack_info)
        extra = _REDACTOR.value(given)
        try:
            return _line(fields | extra)
        except (TypeError, ValueError, RecursionError):
            return _line(fields | {name: _as_text(value) for name, value in extra.items()})


def _line(fields: dict[str, Any]) -> str:
    return json.dumps(fields, ensure_ascii=False, allow_nan=False, default=_as_text)


def _as_text(value: object) -> str:
    return _REDACTOR.text(str(value))
