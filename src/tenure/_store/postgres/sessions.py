"""Performing an operation's steps over psycopg: own connections and callers' ones.

What the driver raises becomes our errors here; what is unknown is said to be unknown.
"""

import asyncio
import os
import socket
from collections.abc import Callable, Collection, Coroutine, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import Any, TypeAlias, TypeVar

import psycopg
from psycopg import AsyncConnection, Connection, pq
from psycopg.adapt import AdaptersMap
from psycopg.rows import RowFactory, dict_row, tuple_row
from psycopg.types.datetime import TimestamptzLoader
from psycopg.types.json import JsonbLoader

from tenure._store.postgres.connections import BEGIN_WITH_SETTINGS
from tenure._store.postgres.session_base import DEADLINE, SessionBase, label
from tenure._store.postgres.statements import DEFAULT_SCHEMA, literal
from tenure._store.runner import arun, run
from tenure._store.steps import Op, Pipeline, Query, RawSql, Rows, Single, Step, TransactionMark
from tenure.errors import ConfigError, OutcomeUnknown, QueryFailed, StoreError, Unreachable

T = TypeVar("T")
Publish: TypeAlias = Callable[[Collection[str]], None]
_INVALID_TEXT = "22021"
_WARNING = "01000"


def is_unconfirmed(diagnostic: psycopg.errors.Diagnostic) -> bool:
    """Whether a commit stopped waiting for its synchronous standby.

    It is reported as done, with a warning. It is not known to be durable, so it is not done.
    """
    return diagnostic.sqlstate == _WARNING and diagnostic.severity_nonlocalized == "WARNING"


def _registered(name: str, loader: type[Any]) -> type[Any] | None:
    plain = AdaptersMap(psycopg.adapters)
    plain.register_loader(name, loader)
    return plain.get_loader(plain.types[name].oid, pq.Format.TEXT)


_LOADERS: dict[str, type[Any]] = {"jsonb": JsonbLoader, "timestamptz": TimestamptzLoader}
_OIDS = {name: psycopg.adapters.types[name].oid for name in _LOADERS}
# What psycopg makes of these where it has a faster one of its own.
_PLAIN = {name: _registered(name, loader) for name, loader in _LOADERS.items()}


def _reset_loaders(cursor: psycopg.RawCursor[Any] | psycopg.AsyncRawCursor[Any]) -> None:
    """Read JSON and instants as psycopg does by itself, whatever a caller has set on the
    connection: Django's reads jsonb as text, and instants without their zone."""
    for name, loader in _LOADERS.items():
        if cursor.connection.adapters.get_loader(_OIDS[name], pq.Format.TEXT) is not _PLAIN[name]:
            cursor.adapters.register_loader(name, loader)


def _answers(cursor: psycopg.RawCursor[Any] | psycopg.AsyncRawCursor[Any]) -> bool:
    """Whether there are rows to fetch; to describe them takes longer than to read one."""
    return cursor.pgresult is not None and cursor.pgresult.nfields > 0


def _rows(step: Single) -> RowFactory[Any]:
    """How the step wants its rows."""
    return tuple_row if isinstance(step, Query) and step.as_tuples else dict_row


class _Session(SessionBase):
    """What both kinds of session share: texts, the watch over commits, the naming of errors."""

    def __init__(
        self,
        connection: Connection[Any] | AsyncConnection[Any],
        *,
        schema: str,
        own: bool,
        ring: Publish | None,
    ) -> None:
        super().__init__(schema)
        self._either = connection
        self._pgconn = connection.pgconn
        self._own = own
        self._pooled = own and getattr(connection, "behind_pooler", False)
        self._warned = False
        self._ring = ring
        self._woken: set[str] = set()
        if self._pooled:
            self._begin = BEGIN_WITH_SETTINGS

    def _watch(self, diagnostic: psycopg.errors.Diagnostic) -> None:
        self._warned = self._warned or is_unconfirmed(diagnostic)

    def _ready(self) -> None:
        """An own connection that was left inside a transaction would swallow what comes next."""
        if self._own and self._pgconn.transaction_status != pq.TransactionStatus.IDLE:
            raise Unreachable("the connection was left inside a transaction; make a new one")

    def _check(self, step: Step) -> None:
        super()._check(step)
        if isinstance(step, RawSql) and step.session and self._pooled:
            raise ConfigError(
                "this needs a session of its own, and a pooler stands before the server; "
                "give the database's own address, as in: tenure db migrate --database-url …"
            )

    def _needs_transaction(self, step: Single) -> bool:
        """Whether a statement would go to the server without our settings and deadlines: what a
        pooler hands out has them for one transaction only."""
        if not self._pooled or self._inside() or isinstance(step, TransactionMark):
            return False
        # What runs concurrently runs in no transaction.
        return isinstance(step, Query) or "CONCURRENTLY" not in step.text

    def _discard(self) -> None:
        """Let no own connection live on inside a transaction that nobody will end."""
        if self._own and self._pgconn.transaction_status != pq.TransactionStatus.IDLE:
            self._pgconn.finish()

    def _after(self) -> None:
        """Ring for what was enqueued; also after an error: a commit whose answer was cut off may
        have been done."""
        woken, self._woken = self._woken, set()
        if self._ring and woken:
            self._ring(woken)

    def _text(self, step: Single) -> tuple[bytes, list[str | None] | None]:
        match step:
            case Query(name, params):
                self._note(params.get("wake"))
                statement = self._statements[name]
                return statement.encoded, [literal(v) for v in statement.arguments(params)]
            case RawSql(text):
                return text.encode(), None
            case TransactionMark():
                return self._mark(step).encode(), None

    def _can_pipeline(self) -> bool:
        """Whether statements may be sent before those ahead of them are answered: not on a caller's
        connection, which may be in a pipeline of the caller's, nor through a pooler."""
        return self._own and not self._pooled and psycopg.Pipeline.is_supported()

    def _note(self, queues: object) -> None:
        """Keep in mind which queues a statement wakes."""
        if isinstance(queues, list):
            self._woken.update(queues)

    def _inside(self) -> bool:
        """Whether the next statement is part of a transaction, begun or about to be."""
        idle = self._pgconn.transaction_status == pq.TransactionStatus.IDLE
        return not (idle and self._either.autocommit)

    @contextmanager
    def _driver_errors(self, step: Step) -> Iterator[None]:
        """Raise what the driver raises as one of our errors, and a doubtful commit as unknown."""
        name = label(step)
        was_open = self._pgconn.transaction_status != pq.TransactionStatus.IDLE
        self._warned = False
        try:
            yield
        except (UnicodeEncodeError, psycopg.DataError) as error:
            state = getattr(error, "sqlstate", None) or _INVALID_TEXT
            raise QueryFailed(str(error), sqlstate=state, statement=name) from error
        except psycopg.Error as error:
            if error.sqlstate is not None and self._pgconn.status == pq.ConnStatus.OK:
                raise QueryFailed(
                    str(error),
                    sqlstate=error.sqlstate,
                    statement=name,
                    constraint=error.diag.constraint_name,
                    source=error.diag.source_function,
                ) from error
            if was_open and step is not TransactionMark.COMMIT:
                raise Unreachable(f"{name}: the connection broke, nothing was done") from error
            raise OutcomeUnknown(
                f"{name}: the connection broke before the answer came; ask again"
            ) from error
        if self._warned:
            raise OutcomeUnknown(f"{name}: written, but not confirmed by the standby; ask again")


class Session(_Session):
    """Performs operations over a psycopg connection.

    On an own connection, in autocommit, each statement is a transaction of its own unless
    the operation marks one. On a caller's, everything joins the caller's transaction, and
    the acknowledgement is the caller's COMMIT.
    """

    def __init__(
        self,
        connection: Connection[Any],
        *,
        schema: str = DEFAULT_SCHEMA,
        own: bool = True,
        ring: Publish | None = None,
    ) -> None:
        super().__init__(connection, schema=schema, own=own, ring=ring)
        self._connection = connection
        if own:
            connection.add_notice_handler(self._watch)

    def run(self, op: Op[T]) -> T:
        """Perform an operation and return its answer."""
        self._ready()
        with self._translating_errors():
            return run(op, self._perform)

    def _perform(self, step: Step) -> Rows:
        if isinstance(step, Pipeline):
            return self._flow(step)
        self._check(step)
        if self._needs_transaction(step):
            return self._as_transaction(step)
        with self._driver_errors(step):
            text, arguments = self._text(step)
            cursor = psycopg.RawCursor(self._connection, row_factory=_rows(step))
            if not self._own:
                _reset_loaders(cursor)
            cursor.execute(text, arguments, prepare=True if self._own and arguments else None)
            return cursor.fetchall() if _answers(cursor) else []

    def _flow(self, flow: Pipeline) -> Rows:
        """Send all, then read all. What one of them raises is raised when its answer is read."""
        if not self._can_pipeline():
            return [self._perform(query) for query in flow.queries]
        with self._driver_errors(flow):
            with self._connection.pipeline():
                cursors = [self._sent(query) for query in flow.queries]
            return [cursor.fetchall() for cursor in cursors]

    def _sent(self, query: Query) -> psycopg.RawCursor[Any]:
        text, arguments = self._text(query)
        cursor = psycopg.RawCursor(self._connection, row_factory=_rows(query))
        return cursor.execute(text, arguments, prepare=True)

    def _as_transaction(self, step: Single) -> Rows:
        """The statement as a transaction of its own."""
        self._perform(TransactionMark.BEGIN)
        try:
            rows = self._perform(step)
        except StoreError:
            with suppress(StoreError):
                self._perform(TransactionMark.ROLLBACK)
            raise
        self._perform(TransactionMark.COMMIT)
        return rows


class AsyncSession(_Session):
    """The same over an async connection, with a deadline on each statement.

    At the deadline the socket is shut: a cancel could reach the server inside a commit and
    turn a wait for the standby into a false success.
    """

    def __init__(
        self,
        connection: AsyncConnection[Any],
        *,
        schema: str = DEFAULT_SCHEMA,
        own: bool = True,
        deadline: timedelta = DEADLINE,
        ring: Publish | None = None,
    ) -> None:
        super().__init__(connection, schema=schema, own=own, ring=ring)
        self._connection = connection
        self._deadline = deadline.total_seconds()
        if own:
            connection.add_notice_handler(self._watch)

    async def run(self, op: Op[T]) -> T:
        """Perform an operation and return its answer."""
        self._ready()
        with self._translating_errors():
            return await arun(op, self._perform)

    def set_deadline(self, deadline: timedelta) -> None:
        """From now on each statement has so long to be answered."""
        self._deadline = deadline.total_seconds()

    async def ping(self) -> None:
        """Return if the server answers within the deadline."""
        await self._perform(RawSql("SELECT 1"))

    async def _perform(self, step: Step) -> Rows:
        if isinstance(step, Pipeline):
            return await self._flow(step)
        self._check(step)
        if self._needs_transaction(step):
            return await self._as_transaction(step)
        patient = isinstance(step, Query) and step.no_timeout
        loop = asyncio.get_running_loop()
        timer = None if patient else loop.call_later(self._deadline, self._shut)
        try:
            with self._driver_errors(step):
                return await self._uncancelled(self._execute(step))
        finally:
            if timer:
                timer.cancel()

    async def _flow(self, flow: Pipeline) -> Rows:
        """Send all, then read all. What one of them raises is raised when its answer is read. The
        deadline is the server's: not the time that the queries take to be made."""
        if not self._can_pipeline():
            return [await self._perform(query) for query in flow.queries]
        alarm = _Alarm(self._deadline, self._shut)
        try:
            with self._driver_errors(flow):
                return await self._uncancelled(self._execute_flow(flow, alarm))
        finally:
            alarm.off()

    async def _execute_flow(self, flow: Pipeline, alarm: "_Alarm") -> Rows:
        cursors = []
        async with self._connection.pipeline():
            for query in flow.queries:
                alarm.on()
                text, arguments = self._text(query)
                cursor = psycopg.AsyncRawCursor(self._connection, row_factory=_rows(query))
                cursors.append(await cursor.execute(text, arguments, prepare=True))
                alarm.off()
            alarm.on()
        return [await cursor.fetchall() for cursor in cursors]

    async def _as_transaction(self, step: Single) -> Rows:
        """The statement as a transaction of its own."""
        await self._perform(TransactionMark.BEGIN)
        try:
            rows = await self._perform(step)
        except StoreError:
            with suppress(StoreError):
                await self._perform(TransactionMark.ROLLBACK)
            raise
        await self._perform(TransactionMark.COMMIT)
        return rows

    async def _execute(self, step: Single) -> Rows:
        text, arguments = self._text(step)
        cursor = psycopg.AsyncRawCursor(self._connection, row_factory=_rows(step))
        if not self._own:
            _reset_loaders(cursor)
        prepare = True if self._own and arguments else None
        await cursor.execute(text, arguments, prepare=prepare)
        return await cursor.fetchall() if _answers(cursor) else []

    async def _uncancelled(self, sent: Coroutine[Any, Any, Rows]) -> Rows:
        """Await what was sent; if cancelled, shut the socket: psycopg would send a cancel."""
        task = asyncio.ensure_future(sent)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            self._shut()
            await asyncio.wait({task})
            task.exception()
            raise

    def _shut(self) -> None:
        if self._pgconn.status != pq.ConnStatus.OK:
            return
        with socket.socket(fileno=os.dup(self._pgconn.socket)) as copy:
            copy.shutdown(socket.SHUT_RDWR)


class _Alarm:
    """A deadline that is on while the server is waited for, and off while the caller is."""

    def __init__(self, seconds: float, act: Callable[[], None]) -> None:
        self._seconds = seconds
        self._act = act
        self._timer: asyncio.TimerHandle | None = None

    def on(self) -> None:
        """From now on."""
        self.off()
        self._timer = asyncio.get_running_loop().call_later(self._seconds, self._act)

    def off(self) -> None:
        """No longer."""
        if self._timer is not None:
            self._timer.cancel()
