"""Protocols for one database: a store, and runners for its operations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Collection, Sequence
    from contextlib import AbstractAsyncContextManager, AbstractContextManager
    from datetime import timedelta

    from tenure._model.ids import JobId
    from tenure._model.job import JobRow
    from tenure._model.stats import ListenCheck
    from tenure._rules.sealing import Sealing
    from tenure._store.migrations import Migration
    from tenure._store.port import Store
    from tenure._store.steps import Op

T = TypeVar("T")


class Runner(Protocol):
    """Runs operations on one connection."""

    def run(self, op: Op[T]) -> T:
        """Run an operation and return its result."""


class AsyncRunner(Protocol):
    async def run(self, op: Op[T]) -> T: ...


class ClosableRunner(AsyncRunner, Protocol):
    async def close(self) -> None: ...


class ServiceConnection(ClosableRunner, Protocol):
    """A service's own connection, opened on first use and reopened if it breaks."""

    def set_deadline(self, deadline: timedelta) -> None:
        """Set the deadline for each statement."""

    async def open(self) -> None:
        """Connect now if not connected, so the first operation doesn't wait."""

    def listen(self, channel: str, *, anyway: bool = False) -> AsyncIterator[str]:
        """Yield payloads, and "" as a heartbeat.

        Behind a pooler, yield nothing unless `anyway` is set.
        """


class Notifier(Protocol):
    """Delivers wakeups outside the database. A lost wakeup delays a job until the next poll."""

    def publish(self, queues: Collection[str]) -> None:
        """Wake these queues' workers, without waiting or raising."""

    def listen(self) -> AsyncIterator[str]:
        """Yield wakeups, and "" as a heartbeat. Raise Unreachable if the connection breaks."""

    def check(self) -> None:
        """Raise Unreachable, with the reason, if wakeups don't get through."""

    def close(self) -> None:
        """Publish pending wakeups if that can be done immediately, and disconnect."""


class Engine(Protocol):
    """One database: its store, and runners for operations."""

    @property
    def store(self) -> Store:
        """Return the store's operations."""

    @property
    def url(self) -> str:
        """Return the database URL with its password.

        Pass it only to our own processes, and never log it.
        """

    @property
    def schema(self) -> str: ...

    @property
    def channel(self) -> str:
        """Return the wakeup channel."""

    @property
    def notifier(self) -> Notifier | None:
        """Return the notifier that sends wakeups outside the database after our enqueues commit."""

    @property
    def sealing(self) -> Sealing:
        """Return what seals and opens the payload of this app's jobs."""

    def run(self, op: Op[T], connection: Any = None) -> T:
        """Run an operation on one of our own connections, or in a caller's transaction."""

    async def arun(self, op: Op[T], connection: Any = None) -> T: ...

    def reserve_pool(self, name: str, *, connections: int, waiting: int) -> Engine:
        """Return this engine with its own pool for `run` and `arun`, which other operations can't
        exhaust.

        While `waiting` async operations are waiting for a connection, others fail with Overloaded.
        """

    def limit_waiting(self, waiting: int) -> None:
        """While this many async operations are waiting, make further ones fail with Overloaded.

        Call it before the first operation.
        """

    def session(self) -> AbstractContextManager[Runner]:
        """Open one connection without deadlines, for migrations and one-off programs."""

    def service_connection(
        self, name: str, *, deadline: timedelta | None = None
    ) -> ServiceConnection:
        """Return a connection for one service, with a deadline for each statement."""

    def on(self, connection: Any) -> Runner:
        """Return a runner that joins the transaction on a caller's sync connection."""

    def aon(self, connection: Any) -> AsyncRunner:
        """Return a runner that joins the transaction on a caller's async connection."""

    def transaction(self) -> AbstractContextManager[Any]:
        """Open a READ COMMITTED transaction with plain settings, for handlers."""

    def atransaction(self) -> AbstractAsyncContextManager[Any]: ...

    def check_listen(self) -> ListenCheck:
        """Check whether one connection receives another's notifications."""

    def wait(self, job_id: JobId, timeout: float | None) -> JobRow | None:
        """Return the job once it has ended, or its current row when the timeout is reached.

        Returns None if the job doesn't exist.
        """

    async def wait_async(self, job_id: JobId, timeout: float | None) -> JobRow | None:  # noqa: ASYNC109
        ...

    @property
    def migrations(self) -> Sequence[Migration]: ...

    def reserve_connections(self, connections: int) -> None:
        """Let the pools grow for one more worker, because each of its handlers may need one.

        Several workers in one process share the pools, so their reservations add up.
        """

    def release_connections(self, connections: int) -> None:
        """Undo `reserve_connections` when the worker has stopped."""

    def close(self) -> None:
        """Close the sync connections."""

    async def aclose(self) -> None:
        """Close this event loop's connections."""
