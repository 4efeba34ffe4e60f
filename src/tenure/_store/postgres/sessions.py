"""Performing an operation's steps over psycopg: own connections and callers' ones.

What the driver raises becomes our errors here; what is unknown is said to be unknown.
"""

import asyncio
import os
import socket
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, TypeVar

import psycopg
from psycopg import AsyncConnection, Connection, pq
from psycopg.rows import dict_row

from tenure._store.port import Ddl, Mark, Op, Query, Rows, Step
from tenure._store.postgres.literals import literal
from tenure._store.postgres.statements import DEFAULT_SCHEMA, statements
from tenure._store.runner import arun, run
from tenure.errors import InvalidValue, OutcomeUnknown, QueryFailed, Unreachable

T = TypeVar("T")
_INVALID_TEXT = "22021"
_WARNING = "01000"
_DEADLINE = timedelta(seconds=15)


class _Session:
    """What both kinds of session share: texts, the watch over commits, the naming of errors."""

    def __init__(self, pgconn: pq.abc.PGconn, *, schema: str, own: bool) -> None:
        self._statements = statements(schema)
        self._pgconn = pgconn
        self._own = own
        self._warned = False

    def _watch(self, diagnostic: psycopg.errors.Diagnostic) -> None:
        # A commit that stops waiting for its synchronous standby (cancelled) is reported as
        # done, with a warning. It is not known to be durable, so it is not done.
        if diagnostic.sqlstate == _WARNING and diagnostic.severity_nonlocalized == "WARNING":
            self._warned = True

    def _ready(self) -> None:
        """An own connection that was left inside a transaction would swallow what comes next."""
        if self._own and self._pgconn.transaction_status != pq.TransactionStatus.IDLE:
            raise Unreachable("the connection was left inside a transaction; make a new one")

    def _may(self, step: Step, *, autocommit: bool) -> None:
        idle = self._pgconn.transaction_status == pq.TransactionStatus.IDLE
        if isinstance(step, Query) and step.within and autocommit and idle:
            raise InvalidValue(
                f"{step.name} means nothing outside a transaction: its lock would be gone at once; "
                "open one first"
            )

    def _abandon(self) -> None:
        """Let no own connection live on inside a transaction that nobody will end."""
        if self._own and self._pgconn.transaction_status != pq.TransactionStatus.IDLE:
            self._pgconn.finish()

    def _text(self, step: Step) -> tuple[bytes, list[str | None] | None]:
        match step:
            case Query(name, params):
                statement = self._statements[name]
                return statement.text.encode(), [literal(v) for v in statement.arguments(params)]
            case Ddl(text):
                return text.encode(), None
            case Mark():
                return step.value.encode(), None

    @contextmanager
    def _named(self, step: Step) -> Iterator[None]:
        """Raise what the driver raises as one of our errors, and a doubtful commit as unknown."""
        label = step.name if isinstance(step, Query) else type(step).__name__.lower()
        was_open = self._pgconn.transaction_status != pq.TransactionStatus.IDLE
        self._warned = False
        try:
            yield
        except (UnicodeEncodeError, psycopg.DataError) as error:
            state = getattr(error, "sqlstate", None) or _INVALID_TEXT
            raise QueryFailed(str(error), sqlstate=state, statement=label) from error
        except psycopg.Error as error:
            if error.sqlstate is not None and self._pgconn.status == pq.ConnStatus.OK:
                raise QueryFailed(
                    str(error),
                    sqlstate=error.sqlstate,
                    statement=label,
                    constraint=error.diag.constraint_name,
                ) from error
            if was_open and step is not Mark.COMMIT:
                raise Unreachable(f"{label}: the connection broke, nothing was done") from error
            raise OutcomeUnknown(
                f"{label}: the connection broke before the answer came; ask again"
            ) from error
        if self._warned:
            raise OutcomeUnknown(f"{label}: written, but not confirmed by the standby; ask again")


class Session(_Session):
    """Performs operations over a psycopg connection.

    On an own connection, in autocommit, each statement is a transaction of its own unless
    the operation marks one. On a caller's, everything joins the caller's transaction, and
    the acknowledgement is the caller's COMMIT.
    """

    def __init__(
        self, connection: Connection[Any], *, schema: str = DEFAULT_SCHEMA, own: bool = True
    ) -> None:
        super().__init__(connection.pgconn, schema=schema, own=own)
        self._connection = connection
        if own:
            connection.add_notice_handler(self._watch)

    def run(self, op: Op[T]) -> T:
        """Perform an operation and return its answer."""
        self._ready()
        try:
            return run(op, self._perform)
        except BaseException:
            self._abandon()
            raise

    def _perform(self, step: Step) -> Rows:
        if isinstance(step, Mark) and not self._own:
            return []
        self._may(step, autocommit=self._connection.autocommit)
        with self._named(step):
            text, arguments = self._text(step)
            cursor = psycopg.RawCursor(self._connection, row_factory=dict_row)
            cursor.execute(text, arguments, prepare=True if self._own and arguments else None)
            return cursor.fetchall() if cursor.description else []


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
        deadline: timedelta = _DEADLINE,
    ) -> None:
        super().__init__(connection.pgconn, schema=schema, own=own)
        self._connection = connection
        self._deadline = deadline.total_seconds()
        if own:
            connection.add_notice_handler(self._watch)

    async def run(self, op: Op[T]) -> T:
        """Perform an operation and return its answer."""
        self._ready()
        try:
            return await arun(op, self._perform)
        except BaseException:
            self._abandon()
            raise

    async def _perform(self, step: Step) -> Rows:
        if isinstance(step, Mark) and not self._own:
            return []
        self._may(step, autocommit=self._connection.autocommit)
        patient = isinstance(step, Query) and step.patient
        loop = asyncio.get_running_loop()
        timer = None if patient else loop.call_later(self._deadline, self._shut)
        try:
            with self._named(step):
                return await self._uncancelled(self._execute(step))
        finally:
            if timer:
                timer.cancel()

    async def _execute(self, step: Step) -> Rows:
        text, arguments = self._text(step)
        cursor = psycopg.AsyncRawCursor(self._connection, row_factory=dict_row)
        prepare = True if self._own and arguments else None
        await cursor.execute(text, arguments, prepare=prepare)
        return await cursor.fetchall() if cursor.description else []

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
