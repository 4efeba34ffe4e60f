"""Tenure's log, with writer threads for processes that must never block on logging.

In a user's program, records go straight to Python's `logging`, as in any library. A worker's
processes never wait for stderr or for a lock that other code can hold. One thread writes lines to
stderr, and another passes records to the log handlers that the user installed. If records arrive
too quickly, some are dropped, and Tenure counts how many.
"""

import atexit
import contextvars
import logging
import os
import select
import sys
import threading
from collections.abc import Iterator, Mapping
from queue import SimpleQueue
from types import TracebackType
from typing import NamedTuple, TypeAlias

Fields: TypeAlias = Mapping[str, object]
_Error: TypeAlias = tuple[type[BaseException], BaseException, TracebackType | None]

# Queue limits. Records from the user's code leave some room for Tenure's own lines.
_MOST_RECORDS = 10_000
_MOST_CHARACTERS = 8 * 1024 * 1024
_RESERVE = 0.8
_BATCH = 64 * 1024
_AT_EXIT = 1.0


class _Own(NamedTuple):
    """One of Tenure's own log records, with context that a user's log handler can read."""

    record: logging.LogRecord
    context: contextvars.Context


class _Last(NamedTuple):
    """Marks a point in the queue: everything before it has been processed."""

    done: threading.Event


class LogWriter:
    """The thread that writes lines to stderr.

    Its queue needs no lock that other code can hold. A log call therefore never waits, and an
    exception raised in the middle of one never leaves a lock held.
    """

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._queue: SimpleQueue[str | _Last] = SimpleQueue()
        # Any thread may change these. Each change is atomic.
        self._waiting = 0
        self.dropped: int = 0
        self._is_copy = False
        threading.Thread(target=self._run, name="tenure-log", daemon=True).start()
        os.register_at_fork(after_in_child=self._forked)

    def _forked(self) -> None:
        """After a fork, write directly, because the child process doesn't have this thread."""
        self._is_copy = True

    def put(self, line: str, *, own: bool) -> None:
        share = 1.0 if own else _RESERVE
        if self._is_copy:
            self._write(line)
        elif (
            self._queue.qsize() < share * _MOST_RECORDS and self._waiting < share * _MOST_CHARACTERS
        ):
            self._waiting += len(line)
            self._queue.put(line)
        else:
            self.dropped += 1

    def flush(self, within: float) -> bool:
        if self._is_copy or self._waiting <= 0:
            return True
        last = _Last(threading.Event())
        self._queue.put(last)
        return last.done.wait(within)

    def _run(self) -> None:
        lines: list[str] = []
        size = 0
        while True:
            item = self._queue.get()
            if isinstance(item, str):
                lines.append(item)
                size += len(item)
                if size < _BATCH and self._queue.qsize():
                    continue
            if lines:
                self._write("".join(lines))
                self._waiting -= size
                lines, size = [], 0
            if isinstance(item, _Last):
                item.done.set()
            if self.dropped:
                dropped, self.dropped = self.dropped, 0
                self._write(_line(logging.WARNING, f"{dropped} log records dropped"))

    def _write(self, text: str) -> None:
        """Write to stderr, waiting if necessary. Drop the text on error."""
        rest = memoryview(text.encode(errors="backslashreplace"))
        while rest:
            try:
                rest = rest[os.write(self._fd, rest) :]
            except BlockingIOError:
                # Another process made the shared pipe non-blocking.
                select.select([], [self._fd], [], 1.0)
            except OSError:
                return


class _Forwarder:
    """The thread that passes Tenure's records to log handlers that the user installed."""

    def __init__(self) -> None:
        self._queue: SimpleQueue[_Own | _Last] = SimpleQueue()
        self._is_copy = False
        threading.Thread(target=self._run, name="tenure-log-handlers", daemon=True).start()
        os.register_at_fork(after_in_child=self._forked)

    def _forked(self) -> None:
        self._is_copy = True

    def put(self, record: logging.LogRecord) -> bool:
        own = _Own(record, contextvars.copy_context())
        if self._is_copy:
            own.context.run(_forward, record)
        elif self._queue.qsize() < _MOST_RECORDS:
            self._queue.put(own)
        else:
            return False
        return True

    def flush(self, within: float) -> bool:
        """Wait up to this long for the handlers, then flush them as `logging` does at exit."""
        last = _Last(threading.Event())
        if not self._is_copy:
            self._queue.put(last)
            last.done.wait(within)
        return last.done.is_set()

    def _run(self) -> None:
        while True:
            item = self._queue.get()
            if isinstance(item, _Own):
                item.context.run(_forward, item.record)
            else:
                logging.shutdown()
                item.done.set()


class StderrHandler(logging.Handler):
    """Format records immediately, because their objects may change, and queue them for writing."""

    never_waits = True

    def handle(self, record: logging.LogRecord) -> bool:
        passed: object = self.filter(record)
        if isinstance(passed, logging.LogRecord):
            record = passed
        if passed:
            self.emit(record)
        return bool(passed)

    def emit(self, record: logging.LogRecord) -> None:
        try:
            line = f"{self.format(record)}\n"
        except Exception:  # noqa: BLE001 - mostly an argument that doesn't match its format string
            self.handleError(record)
            return
        if _process is not None:
            _process.writer.put(line, own=record.name == "tenure")


class _LogProcess(NamedTuple):
    handler: StderrHandler
    writer: LogWriter
    forwarder: _Forwarder


class Log:
    """A logger that never waits in a worker's processes."""

    def __init__(self, name: str) -> None:
        self._logger = logging.getLogger(name)

    def debug(self, message: str, *args: object, extra: Fields | None = None) -> None:
        self._log(logging.DEBUG, message, args, extra)

    def info(self, message: str, *args: object, extra: Fields | None = None) -> None:
        self._log(logging.INFO, message, args, extra)

    def warning(self, message: str, *args: object, extra: Fields | None = None) -> None:
        self._log(logging.WARNING, message, args, extra)

    def error(
        self,
        message: str,
        *args: object,
        extra: Fields | None = None,
        exc_info: BaseException | None = None,
    ) -> None:
        error = None if exc_info is None else (type(exc_info), exc_info, exc_info.__traceback__)
        self._log(logging.ERROR, message, args, extra, error)

    def exception(self, message: str, *args: object, extra: Fields | None = None) -> None:
        kind, error, trace = sys.exc_info()
        known = None if kind is None or error is None else (kind, error, trace)
        self._log(logging.ERROR, message, args, extra, known)

    def log(self, level: int, message: str, *args: object, extra: Fields | None = None) -> None:
        self._log(level, message, args, extra)

    def _log(
        self,
        level: int,
        message: str,
        args: tuple[object, ...],
        extra: Fields | None,
        error: _Error | None = None,
    ) -> None:
        logger = self._logger
        if _process is None:
            logger.log(level, message, *args, extra=extra, exc_info=error, stacklevel=3)
            return
        # Not isEnabledFor, which may take one of `logging`'s locks.
        if logger.disabled or logger.manager.disable >= level or level < logger.getEffectiveLevel():
            return
        caller = sys._getframe(2)  # noqa: SLF001 - as `logging` does it
        code = caller.f_code
        record = logging.LogRecord(
            logger.name,
            level,
            code.co_filename,
            caller.f_lineno,
            message,
            args,
            error,
            code.co_name,
        )
        record.__dict__.update(extra or {})
        waiting = bool(logger.filters)
        handlers = list(_handlers(logger, level))
        if not waiting:
            for handler in handlers:
                if getattr(handler, "never_waits", False):
                    handler.handle(record)
                else:
                    waiting = True
        if (waiting or not handlers) and not _process.forwarder.put(record):
            _process.writer.dropped += 1


def _handlers(logger: logging.Logger | None, level: int) -> Iterator[logging.Handler]:
    while logger is not None:
        yield from (handler for handler in logger.handlers if level >= handler.level)
        logger = logger.parent if logger.propagate else None


def _forward(record: logging.LogRecord) -> None:
    """Pass a record to handlers that may block, or to all of them if its logger has a filter."""
    logger = logging.getLogger(record.name)
    try:
        if logging.getLogRecordFactory() is not logging.LogRecord:
            # Add the fields from the user's record factory.
            made = logging.makeLogRecord({})
            made.__dict__ |= vars(record)
            record = made
        handlers = list(_handlers(logger, record.levelno))
        if logger.filters or not handlers:
            logger.handle(record)
            return
        for handler in handlers:
            if not getattr(handler, "never_waits", False):
                handler.handle(record)
    except Exception:  # noqa: BLE001 - a user's handler must not end this thread
        write(_line(logging.ERROR, "a log handler raised an exception"))


_process: _LogProcess | None = None


def write_to_stderr(level: str, formatter: logging.Formatter) -> None:
    """Log to stderr at this level and above, without ever blocking on it."""
    global _process  # noqa: PLW0603 - a process has one stderr
    handler = StderrHandler()
    handler.setFormatter(formatter)
    logging.basicConfig(level=level, handlers=[handler])
    _process = _LogProcess(handler, LogWriter(sys.stderr.fileno()), _Forwarder())
    # Runs before `logging`'s exit hook, because that was registered earlier.
    atexit.register(flush, _AT_EXIT)


def write(text: str) -> None:
    """Write raw text to stderr, after the lines logged before it."""
    if _process is None:
        sys.stderr.write(text)
    else:
        _process.writer.put(text, own=True)


def flush(within: float) -> bool:
    """Wait up to this long for the handlers, then flush them as `logging` does at exit."""
    return _process is None or _process.writer.flush(within)


def write_at_last(record: logging.LogRecord) -> None:
    """Write a warning that no handler receives, as `logging` does."""
    last = logging.lastResort
    if last is not None and record.levelno >= last.level:
        if _process is None:
            last.handle(record)
        else:
            write(f"{last.format(record)}\n")


def shut_down(within: float) -> None:
    """Flush all log handlers, or give up after this long, as a user's handler may be locked."""
    if _process is not None:
        _process.forwarder.flush(within / 2)
        _process.writer.flush(within / 2)


def _line(level: int, message: str) -> str:
    record = logging.LogRecord("tenure", level, "", 0, message, (), None)
    return (
        f"{record.levelname} {message}\n"
        if _process is None
        else (f"{_process.handler.format(record)}\n")
    )
