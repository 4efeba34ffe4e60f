"""Running operations over a connection: our own ones, callers' ones, of any driver.

What the driver raises becomes our errors here; what is unknown is said to be unknown. All but the
I/O is written once, in `SessionBase` and `_Session`; `Session` and `AsyncSession` send and read.
"""

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
    """Perform an operation's steps one by one; a step's StoreError is raised inside it."""
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
    """The same, awaiting each step."""
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
    """What every session shares, whatever driver it speaks through: the edges of transactions, what
    may be said outside one, and what a table that is not there means."""

    def __init__(self, schema: str) -> None:
        self._schema = schema
        self._statements = statements(schema)
        self._begin = TransactionMark.BEGIN.value
        self._marks: list[bool] = []
        self._pooled = False

    def _inside(self) -> bool:
        """Whether the next statement is part of a transaction, begun or about to be."""
        raise NotImplementedError

    def _discard(self) -> None:
        """Let no connection of our own live on inside a transaction that nobody will end."""

    def _after(self) -> None:
        """What follows an operation, however it ended."""

    def _check(self, step: Step) -> None:
        if isinstance(step, Query) and step.in_transaction and not self._inside():
            raise InvalidValue(
                f"{step.name} means nothing outside a transaction: its lock would be gone at once; "
                "open one first"
            )
        if self._pooled and isinstance(step, RawSql) and step.session:
            raise ConfigError(
                "this needs a session of its own, and a pooler stands before the server; "
                "give the database's own address, as in: tenure db migrate --database-url …"
            )

    def _mark(self, mark: TransactionMark) -> str:
        """The edge of a transaction, or of a part of one: inside another's, or a caller's."""
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
        """After an operation that raised: leave no transaction open, and say what a table that is
        not there means to a statement of ours; a migration's own say it themselves."""
        self._marks.clear()
        try:
            yield
        except QueryFailed as error:
            self._discard()
            if error.is_missing_schema and error.statement in self._statements:
                raise SchemaTooOld(
                    f"the schema {self._schema} is not there, or not whole; run: tenure db migrate"
                ) from error
            raise
        except BaseException:
            self._discard()
            raise
        finally:
            self._after()


def label(step: Step) -> str:
    """A step's name in messages."""
    return step.name if isinstance(step, Query | Pipeline) else type(step).__name__.lower()


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
    """What both psycopg sessions share: all but the sending and the reading.

    On an own connection, in autocommit, each statement is a transaction of its own unless
    the operation marks one. On a caller's, everything joins the caller's transaction, and
    the acknowledgement is the caller's COMMIT.
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
        # Statements may be sent before those ahead of them are answered: not on a caller's
        # connection, which may be in a pipeline of the caller's, nor through a pooler.
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
        """The operation as this connection takes it."""
        if self._own and self._pgconn.transaction_status != pq.TransactionStatus.IDLE:
            # It would swallow what comes next.
            raise Unreachable("the connection was left inside a transaction; make a new one")
        return op if self._takes_pipelines else stepwise(op, self._one_by_one)

    def _one_by_one(self, step: Step) -> Op[Rows]:
        """A pipeline query by query; through a pooler, each statement that would go to the server
        without our settings and deadlines in a transaction of its own."""
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
        """Whether a pooler hands out a server without our settings for this statement: they are for
        one transaction only."""
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
                # Which queues the statement wakes.
                if isinstance(queues := params.get("wake"), list):
                    self._woken.update(queues)
                statement = self._statements[name]
                return statement.encoded, statement.arguments(params)
            case RawSql(text):
                return text.encode(), None
            case TransactionMark():
                return self._mark(step).encode(), None

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
    """Runs operations over a psycopg connection."""

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
        """Run an operation and return its answer."""
        op = self._fitted(op)
        with self._translating_errors():
            return run(op, self._perform)

    def _perform(self, step: Step) -> Rows:
        self._check(step)
        with self._driver_errors(step):
            if isinstance(step, Pipeline):
                with self._connection.pipeline():
                    cursors = [self._send(query) for query in step.queries]
                # What one of them raises is raised when its answer is read.
                return [cursor.fetchall() for cursor in cursors]
            cursor = self._send(step)
            return cursor.fetchall() if _answers(cursor) else []

    def _send(self, step: Single) -> psycopg.RawCursor[Any]:
        text, arguments = self._text(step)
        cursor = psycopg.RawCursor(self._connection, row_factory=_rows(step))
        if not self._own:
            _reset_loaders(cursor)
        return cursor.execute(text, arguments, prepare=True if self._own and arguments else None)


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
        self._alarm = _Alarm(self._shut)
        self.set_deadline(deadline)

    async def run(self, op: Op[T]) -> T:
        """Run an operation and return its answer."""
        op = self._fitted(op)
        with self._translating_errors():
            return await arun(op, self._perform)

    def set_deadline(self, deadline: timedelta) -> None:
        """From now on each statement has so long to be answered."""
        self._alarm.seconds = deadline.total_seconds()

    async def ping(self) -> None:
        """Return if the server answers within the deadline."""
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
                    # The deadline is the server's: not the time that the queries take to be made.
                    self._alarm.off()
                self._alarm.on()
            # What one of them raises is raised when its answer is read.
            return [await cursor.fetchall() for cursor in cursors]
        cursor = await self._send(step)
        return await cursor.fetchall() if _answers(cursor) else []

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

    seconds: float

    def __init__(self, act: Callable[[], None]) -> None:
        self._act = act
        self._timer: asyncio.TimerHandle | None = None

    def on(self) -> None:
        """From now on."""
        self.off()
        self._timer = asyncio.get_running_loop().call_later(self.seconds, self._act)

    def off(self) -> None:
        """No longer."""
        if self._timer is not None:
            self._timer.cancel()
