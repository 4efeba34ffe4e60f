"""What a handler logs: the last of it kept for its attempt, each record with its job's fields."""

import contextlib
import logging
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
    """The end of what was logged in a job, up to a limit."""

    __slots__ = ("_limit", "_lines", "_size", "check", "job")

    def __init__(self, job: JobRow, limit: int = MAX_LOG) -> None:
        self.job = job
        # A handler that is to stop is stopped by its next log call, if not before.
        self.check: Callable[[], None] | None = None
        # Most handlers log nothing.
        self._lines: deque[str] | None = None
        self._size = 0
        self._limit = limit

    def add(self, line: str) -> None:
        """Note a line, and forget old ones that no longer fit."""
        line = line[-self._limit :]
        lines = self._lines
        if lines is None:
            lines = self._lines = deque()
        lines.append(line)
        self._size += len(line) + 1
        while self._size > self._limit and len(lines) > 1:
            self._size -= len(lines.popleft()) + 1

    def text(self) -> str | None:
        """What is kept, or None if nothing was logged."""
        return "\n".join(list(self._lines)) if self._lines else None


CURRENT: ContextVar[LogTail] = ContextVar("tenure_excerpt")


class LogTailHandler(logging.Handler):
    """Gives every record that is logged inside a job that job's fields, and notes it with the job's
    excerpt."""

    never_waits = True

    def handle(self, record: logging.LogRecord) -> bool:
        """Note the record, without the lock that `logging` takes around this: a handler's thread
        that was stopped there would leave it locked, for all others."""
        self.emit(record)
        return True

    def emit(self, record: logging.LogRecord) -> None:
        """Note the record, if it was logged inside a job. In a program that has configured no
        logging, a warning still goes where it would go without us."""
        excerpt = CURRENT.get(None)
        if excerpt is not None:
            if excerpt.check is not None:
                excerpt.check()
            for name, value in log_fields(excerpt.job).items():
                # Not by a factory of records: that would make a field of the handler's own with
                # the same name an error.
                vars(record).setdefault(name, value)
            with contextlib.suppress(Exception):
                excerpt.add(_FORMAT.format(record))
        if not self._has_company(record):
            _log.write_at_last(record)

    def _has_company(self, record: logging.LogRecord) -> bool:
        """Whether another handler gets the record too."""
        # Not by getLogger, which takes a lock that a stopped handler may have left locked.
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
_keepers = 0


@contextlib.contextmanager
def capture_logs() -> Iterator[None]:
    """Keep excerpts as long as this lasts, here or elsewhere in the process."""
    global _keepers  # noqa: PLW0603 - the root logger is one for all
    root = logging.getLogger()
    # Before all others, so that they find the fields.
    root.handlers = [_handler, *(other for other in root.handlers if other is not _handler)]
    _keepers += 1
    try:
        yield
    finally:
        _keepers -= 1
        if not _keepers:
            root.removeHandler(_handler)
