"""Capture each attempt's last log lines, and add the job's fields to its log records."""

import contextlib
import logging
import threading
from collections import deque
from collections.abc import Iterator
from contextvars import ContextVar
from typing import TYPE_CHECKING

from tenure import _log
from tenure._model.job import JobRow
from tenure._rules.sanitize import MAX_LOG
from tenure._services.base import log_fields

if TYPE_CHECKING:
    from collections.abc import Callable

_FORMAT = logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s", "%H:%M:%S")


class LogTail:
    """A job's last log lines, up to a limit."""

    __slots__ = ("_limit", "_lines", "_output", "_size", "check", "job")

    def __init__(self, job: JobRow, limit: int = MAX_LOG) -> None:
        self.job = job
        # This stops a handler at its next log call if it must stop.
        self.check: Callable[[], None] | None = None
        # Most handlers log nothing.
        self._lines: deque[str] | None = None
        self._output: str | None = None
        self._size = 0
        self._limit = limit

    def add(self, line: str) -> None:
        line = line[-self._limit :]
        lines = self._lines
        if lines is None:
            lines = self._lines = deque()
        lines.append(line)
        self._size += len(line) + 1
        while self._size > self._limit and len(lines) > 1:
            self._size -= len(lines.popleft()) + 1

    def show_output(self, text: str) -> None:
        """Put a command's output after the lines, instead of the output shown before."""
        self._output = text[-self._limit :]

    def text(self) -> str | None:
        text = "\n".join(list(self._lines)) if self._lines else None
        if self._output:
            text = self._output if text is None else f"{text}\n{self._output}"[-self._limit :]
        return text


CURRENT: ContextVar[LogTail] = ContextVar("tenure_excerpt")


class LogTailHandler(logging.Handler):
    """Add the job's fields to each record logged inside a job, and capture its text."""

    never_waits = True

    def handle(self, record: logging.LogRecord) -> bool:
        # Don't take the handler's lock: a stopped thread would leave it locked.
        self.emit(record)
        return True

    def emit(self, record: logging.LogRecord) -> None:
        """Capture a record logged inside a job. If no other handler gets it, write it to stderr."""
        excerpt = CURRENT.get(None)
        if excerpt is not None:
            if excerpt.check is not None:
                excerpt.check()
            for name, value in log_fields(excerpt.job).items():
                # Don't use a record factory, because a handler's own field with the same name would
                # raise.
                vars(record).setdefault(name, value)
            with contextlib.suppress(Exception):
                excerpt.add(_FORMAT.format(record))
        if not self._has_other_handler(record):
            _log.write_at_last(record)

    def _has_other_handler(self, record: logging.LogRecord) -> bool:
        # Don't use getLogger, which takes a lock that a stopped thread may have left locked.
        known = logging.Logger.manager.loggerDict.get(record.name)
        logger: logging.Logger | None = logging.getLogger()
        if isinstance(known, logging.Logger):
            logger = known
        while logger is not None:
            if any(handler is not self for handler in logger.handlers):
                return True
            logger = logger.parent
        return False


_handler = LogTailHandler()
_users = 0
_lock = threading.Lock()


@contextlib.contextmanager
def capture_logs() -> Iterator[None]:
    """Capture the logs of this process's jobs inside the block."""
    global _users  # noqa: PLW0603 - the root logger is one for all
    root = logging.getLogger()
    with _lock:  # Workers on other threads start and stop too.
        # First, so the other handlers see the fields.
        root.handlers = [_handler, *(other for other in root.handlers if other is not _handler)]
        _users += 1
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            if not _users:
                root.removeHandler(_handler)
