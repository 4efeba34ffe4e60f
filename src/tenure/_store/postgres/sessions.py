"""Run operations over any driver's connection, and translate its errors into ours."""

import asyncio
import os
import socket
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import Any, TypeAlias, TypeVar

import psycopg
from psycopg import AsyncConnection, Connection, pq
from psycopg.adapt import AdaptersMap
from psycopg.rows import RowFactory, dict_row, tuple_row
from psycopg.types.datetime import TimestamptzLoader
from psycopg.types.json import JsonbLoader

from tenure._store.postgres.connections import BEGIN_WITH_SETTINGS, DEADLINE
from tenure._store.postgres.decoding import UNDECODABLE, read
from tenure._store.postgres.statements import DEFAULT_SCHEMA, statements
from tenure._store.steps import (
    Op,
    Pipeline,
    Query,
    RawSql,
    Rows,
    Single,
    Step,
    TransactionMark,
    stepwise,
)
from tenure.errors import (
    ConfigError,
    InvalidValue,
    OutcomeUnknown,
    QueryFailed,
    SchemaTooOld,
    StoreError,
    Unreachable,
)

T = TypeVar("T")
Publish: TypeAlias = Callable[[Collection[str]], None]
_INVALID_TEXT = "22021"
_WARNING = "01000"


def run(op: Op[T], perform: Callable[[Step], Rows]) -> T:
    """Perform an operation's steps. If a step raises StoreError, raise it inside the operation."""
    try:
        step = next(op)
        while True:
            try:
                rows = perform(step)
            except StoreError as error:
                step = op.throw(error)
            else:
                step = op.send(rows)
    except StopIteration as stop:
        answer: T = stop.value
        return answer


async def arun(op: Op[T], perform: Callable[[Step], Awaitable[Rows]]) -> T:
    try:
        step = next(op)
        while True:
            try:
                rows = await perform(step)
            except StoreError as error:
                step = op.throw(error)
            else:
                step = op.send(rows)
    except StopIteration as stop:
        answer: T = stop.value
        return answer


class SessionBase:
    """The base class of all drivers' sessions: transaction marks, checks and missing tables."""

    def __init__(self, schema: str) -> None:
        self._schema = schema
        self._statements = statements(schema)
        self._begin = TransactionMark.BEGIN.value
        self._marks: list[bool] = []
        self._pooled = False

    def _inside(self) -> bool:
        """Return whether the next statement runs in a transaction, open or about to begin."""
        raise NotImplementedError

    def _discard(self) -> None:
        """Close one of our own connections if it is left inside a transaction."""

    def _after(self) -> None:
        """Called after an operation, however it ended."""

    def _check(self, step: Step) -> None:
        if isinstance(step, Query) and step.in_transaction and not self._inside():
            raise InvalidValue(
                f"{step.name} needs a transaction: its lock would be gone at once; open one first"
            )
        if self._pooled and isinstance(step, RawSql) and step.session:
            raise ConfigError(
                "this needs a session, which a pooler does not provide; use the database's own "
                "address, as in: tenure db migrate --database-url …"
            )

    def _mark(self, mark: TransactionMark) -> str:
        """Return the SQL for a transaction mark. Inside another transaction, that's a savepoint."""
        if mark is TransactionMark.BEGIN:
            self._marks.append(self._inside())
            return "SAVEPOINT tenure" if self._marks[-1] else self._begin
        if not self._marks.pop():
            return str(mark.value)
        return (
            "RELEASE tenure"
            if mark is TransactionMark.COMMIT
            else "ROLLBACK TO tenure; RELEASE tenure"
        )

    @contextmanager
    def _translating_errors(self) -> Iterator[None]:
        """After an error, leave no transaction open. Report a missing table as SchemaTooOld."""
        self._marks.clear()
        try:
            yield
        except QueryFailed as error:
            self._discard()
            if error.is_missing_schema and error.statement in self._statements:
                raise SchemaTooOld(
                    f"the schema {self._schema} is missing or incomplete; run: tenure db migrate"
                ) from error
            raise
        except BaseException:
            self._discard()
            raise
        finally:
            self._after()


def label(step: Step) -> str:
    return step.name if isinstance(step, Query | Pipeline) else type(step).__name__.lower()


def is_unconfirmed(diagnostic: psycopg.errors.Diagnostic) -> bool:
    """Return whether a commit stopped waiting for its standby.

    The transaction is committed, but may not be durable.
    """
    return diagnostic.sqlstate == _WARNING and diagnostic.severity_nonlocalized == "WARNING"


def _registered(name: str, loader: type[Any]) -> type[Any] | None:
    plain = AdaptersMap(psycopg.adapters)
    plain.register_loader(name, loader)
    return plain.get_loader(plain.types[name].oid, pq.Format.TEXT)


_LOADERS: dict[str, type[Any]] = {"jsonb": JsonbLoader, "timestamptz": TimestamptzLoader}
_OIDS = {name: psycopg.adapters.types[name].oid for name in _LOADERS}
# psycopg's own loaders for these, in case it has faster ones.
_PLAIN = {name: _registered(name, loader) for name, loader in _LOADERS.items()}


def _reset_loaders(cursor: psycopg.RawCursor[Any] | psycopg.AsyncRawCursor[Any]) -> None:
    """Read JSON and timestamps with psycopg's defaults.

    A caller such as Django may have changed them.
    """
    for name, loader in _LOADERS.items():
        if cursor.connection.adapters.get_loader(_OIDS[name], pq.Format.TEXT) is not _PLAIN[name]:
            cursor.adapters.register_loader(name, loader)


def _answers(cursor: psycopg.RawCursor[Any] | psycopg.AsyncRawCursor[Any]) -> bool:
    """Return whether there are rows to fetch. Describing them takes longer than reading one."""
    return cursor.pgresult is not None and cursor.pgresult.nfields > 0


def _as_tuples(step: Single) -> bool:
    return isinstance(step, Query) and step.as_tuples


def _rows(step: Single) -> RowFactory[Any]:
    return tuple_row if _as_tuples(step) else dict_row


class _Session(SessionBase):
    """The base class of both psycopg sessions: everything except sending and reading.

    On our own connections, which are in autocommit mode, each statement is a transaction unless the
    operation starts one itself. On a caller's connection, everything joins the caller's
    transaction, and the write is acknowledged by the caller's COMMIT.
    """

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
        # Use pipelines only on our own connections, because a caller may already be in its own
        # pipeline, and a pooler may not support them.
        self._takes_pipelines = own and not self._pooled and psycopg.Pipeline.is_supported()
        self._warned = False
        self._ring = ring
        self._woken: set[str] = set()
        if self._pooled:
            self._begin = BEGIN_WITH_SETTINGS
        if own:
            connection.add_notice_handler(self._watch)

    def _watch(self, diagnostic: psycopg.errors.Diagnostic) -> None:
        self._warned = self._warned or is_unconfirmed(diagnostic)

    def _fitted(self, op: Op[T]) -> Op[T]:
        """Return the operation in a form that this connection can run."""
        if self._own and self._pgconn.transaction_status != pq.TransactionStatus.IDLE:
            # The open transaction would swallow the next statements.
            raise Unreachable("the connection was left inside a transaction; open a new one")
        return op if self._takes_pipelines else stepwise(op, self._one_by_one)

    def _one_by_one(self, step: Step) -> Op[Rows]:
        """Send a pipeline's queries one by one.

        Behind a pooler, wrap each in a transaction with settings.
        """
        if isinstance(step, Pipeline):
            answers = []
            for query in step.queries:
                rows = yield from self._one_by_one(query)
                answers.append(rows)
            return answers
        if not self._needs_transaction(step):
            return (yield step)
        self._check(step)
        yield TransactionMark.BEGIN
        try:
            rows = yield step
        except StoreError:
            with suppress(StoreError):
                yield TransactionMark.ROLLBACK
            raise
        yield TransactionMark.COMMIT
        return rows

    def _needs_transaction(self, step: Single) -> bool:
        """Return whether a pooler would run this statement without our settings."""
        if not self._pooled or self._inside() or isinstance(step, TransactionMark):
            return False
        # CONCURRENTLY can't run inside a transaction.
        return isinstance(step, Query) or "CONCURRENTLY" not in step.text

    def _discard(self) -> None:
        if self._own and self._pgconn.transaction_status != pq.TransactionStatus.IDLE:
            self._pgconn.finish()

    def _after(self) -> None:
        """Publish wakeups, even after an error: a commit may have succeeded without a response."""
        woken, self._woken = self._woken, set()
        if self._ring and woken:
            self._ring(woken)

    def _text(self, step: Single) -> tuple[bytes, list[str | None] | None]:
        match step:
            case Query(name, params):
                # The queues the statement wakes.
                if isinstance(queues := params.get("wake"), list):
                    self._woken.update(queues)
                statement = self._statements[name]
                return statement.encoded, statement.arguments(params)
            case RawSql(text):
                return text.encode(), None
            case TransactionMark():
                return self._mark(step).encode(), None

    def _inside(self) -> bool:
        idle = self._pgconn.transaction_status == pq.TransactionStatus.IDLE
        return not (idle and self._either.autocommit)

    @contextmanager
    def _driver_errors(self, step: Step) -> Iterator[None]:
        """Translate the driver's errors into ours, and an uncertain commit into OutcomeUnknown."""
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
                raise Unreachable(f"{name}: the connection broke, nothing was changed") from error
            raise OutcomeUnknown(
                f"{name}: the connection broke before the answer; try again"
            ) from error
        if self._warned:
            raise OutcomeUnknown(f"{name}: written, but not confirmed by the standby; try again")


class Session(_Session):
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

    def run(self, op: Op[T]) -> T:
        op = self._fitted(op)
        with self._translating_errors():
            return run(op, self._perform)

    def _perform(self, step: Step) -> Rows:
        self._check(step)
        with self._driver_errors(step):
            if isinstance(step, Pipeline):
                with self._connection.pipeline():
                    cursors = [self._send(query) for query in step.queries]
                # A query's error is raised when its response is read.
                return [cursor.fetchall() for cursor in cursors]
            cursor = self._send(step)
            if not _answers(cursor):
                return []
            try:
                return cursor.fetchall()
            except UNDECODABLE:
                return read(cursor, as_tuples=_as_tuples(step))

    def _send(self, step: Single) -> psycopg.RawCursor[Any]:
        text, arguments = self._text(step)
        cursor = psycopg.RawCursor(self._connection, row_factory=_rows(step))
        if not self._own:
            _reset_loaders(cursor)
        return cursor.execute(text, arguments, prepare=True if self._own and arguments else None)


class AsyncSession(_Session):
    """The async session, with a deadline for each statement.

    At the deadline, it shuts down the socket instead of sending a cancel request. A cancel could
    reach the server during a commit, and turn a wait for the standby into a false success.
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
        self._alarm = _Alarm(self._shut)
        self.set_deadline(deadline)

    async def run(self, op: Op[T]) -> T:
        op = self._fitted(op)
        with self._translating_errors():
            return await arun(op, self._perform)

    def set_deadline(self, deadline: timedelta) -> None:
        self._alarm.seconds = deadline.total_seconds()

    async def ping(self) -> None:
        """Return if the server responds within the deadline."""
        await self._perform(RawSql("SELECT 1"))

    async def _perform(self, step: Step) -> Rows:
        self._check(step)
        try:
            with self._driver_errors(step):
                return await self._uncancelled(self._execute(step))
        finally:
            self._alarm.off()

    async def _execute(self, step: Step) -> Rows:
        if isinstance(step, Pipeline):
            cursors = []
            async with self._connection.pipeline():
                for query in step.queries:
                    cursors.append(await self._send(query))
                    # The deadline is for the server, not for the time it takes to build the
                    # queries.
                    self._alarm.off()
                self._alarm.on()
            # A query's error is raised when its response is read.
            return [await cursor.fetchall() for cursor in cursors]
        cursor = await self._send(step)
        if not _answers(cursor):
            return []
        try:
            return await cursor.fetchall()
        except UNDECODABLE:
            return read(cursor, as_tuples=_as_tuples(step))

    async def _send(self, step: Single) -> psycopg.AsyncRawCursor[Any]:
        if not (isinstance(step, Query) and step.no_timeout):
            self._alarm.on()
        text, arguments = self._text(step)
        cursor = psycopg.AsyncRawCursor(self._connection, row_factory=_rows(step))
        if not self._own:
            _reset_loaders(cursor)
        return await cursor.execute(
            text, arguments, prepare=True if self._own and arguments else None
        )

    async def _uncancelled(self, sent: Coroutine[Any, Any, Rows]) -> Rows:
        """Await the statement.

        If cancelled, shut down the socket, because psycopg would otherwise send a cancel request.
        """
        task = asyncio.ensure_future(sent)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            self._shut()
            # anyio cancels again and again. Closing the connection before the statement has seen
            # the end of its socket would make libpq's generator spin forever.
            while not task.done():
                with suppress(asyncio.CancelledError):
                    await asyncio.wait({task})
            task.exception()
            raise

    def _shut(self) -> None:
        if self._pgconn.status != pq.ConnStatus.OK:
            return
        with socket.socket(fileno=os.dup(self._pgconn.socket)) as copy:
            copy.shutdown(socket.SHUT_RDWR)


class _Alarm:
    """A deadline that runs only while waiting for the server, not for the caller."""

    seconds: float

    def __init__(self, act: Callable[[], None]) -> None:
        self._act = act
        self._timer: asyncio.TimerHandle | None = None

    def on(self) -> None:
        self.off()
        self._timer = asyncio.get_running_loop().call_later(self.seconds, self._act)

    def off(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
