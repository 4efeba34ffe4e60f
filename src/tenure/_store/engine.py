"""One database as the rest of the house sees it: a store, and ways to perform its operations.

A protocol only; `_wiring` says which database stands behind it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Collection, Sequence
    from contextlib import AbstractAsyncContextManager, AbstractContextManager
    from datetime import timedelta

    from tenure._model.ids import JobId
    from tenure._model.job import JobRow
    from tenure._model.stats import ListenCheck
    from tenure._store.migrations import Migration
    from tenure._store.port import Store
    from tenure._store.steps import Op

T = TypeVar("T")


class Runner(Protocol):
    """Performs operations on one connection, in the sync world."""

    def run(self, op: Op[T]) -> T:
        """Perform an operation and return its answer."""


class AsyncRunner(Protocol):
    """The same in the async world."""

    async def run(self, op: Op[T]) -> T:
        """Perform an operation and return its answer."""


class ClosableRunner(AsyncRunner, Protocol):
    """Performs operations until it is closed."""

    async def close(self) -> None:
        """Close the connection, if there is one."""


class ServiceConnection(ClosableRunner, Protocol):
    """A connection of one service's own. Made when first needed, and again after it broke."""

    def set_deadline(self, deadline: timedelta) -> None:
        """From now on each statement has so long to be answered."""

    async def open(self) -> None:
        """Make the connection now, if there is none, so that the first need is not kept waiting."""

    def listen(self, channel: str, *, anyway: bool = False) -> AsyncIterator[str]:
        """What arrives on a channel; an empty text at first and now and then, as a sign of life.
        Ends by Unreachable when the connection breaks. Nothing arrives through a pooler, which is
        not even tried unless `anyway`."""


class Notifier(Protocol):
    """A way beside the database by which wakeups travel. What it loses costs a poll."""

    def publish(self, queues: Collection[str]) -> None:
        """Say that there may be something in these queues; without a wait, without an error."""

    def listen(self) -> AsyncIterator[str]:
        """What is rung; an empty text at first and now and then, as a sign of life. Ends by
        Unreachable when the connection breaks."""

    def check(self) -> None:
        """Unreachable, with the reason, unless it carries what is rung."""

    def close(self) -> None:
        """Say what is left to say, if that can be done at once, and let go."""


class Engine(Protocol):
    """One database: what is asked of it, and who performs it."""

    @property
    def store(self) -> Store:
        """The operations there are."""

    @property
    def url(self) -> str:
        """The database's address, password included: for processes of ours, never for a log."""

    @property
    def schema(self) -> str:
        """The schema that everything of ours is in."""

    @property
    def channel(self) -> str:
        """The channel of wakeups."""

    @property
    def notifier(self) -> Notifier | None:
        """What carries wakeups beside that channel, if anything does. It is rung after every
        commit of ours that enqueued."""

    def run(self, op: Op[T], connection: Any = None) -> T:
        """Run an operation on a connection of our own, or in the transaction of a caller's."""

    async def arun(self, op: Op[T], connection: Any = None) -> T: ...

    def session(self) -> AbstractContextManager[Runner]:
        """One connection, made now and closed at the end, that waits as long as it takes: for
        migrations, and for programs that ask once. Unreachable, with the reason, at once."""

    def service_connection(
        self, name: str, *, deadline: timedelta | None = None
    ) -> ServiceConnection:
        """A connection for one service, with a deadline on each statement."""

    def on(self, connection: Any) -> Runner:
        """A caller's sync connection, whose transaction is joined."""

    def aon(self, connection: Any) -> AsyncRunner:
        """A caller's async connection, whose transaction is joined."""

    def transaction(self) -> AbstractContextManager[Any]:
        """A connection with plain settings, inside a READ COMMITTED transaction, for handlers."""

    def atransaction(self) -> AbstractAsyncContextManager[Any]: ...

    def check_listen(self) -> ListenCheck:
        """Whether what one connection notifies is heard by another."""

    def wait(self, job_id: JobId, timeout: float | None) -> JobRow | None:
        """The job once it has ended, or as it is when the time is up; None if there is none."""

    async def wait_async(self, job_id: JobId, timeout: float | None) -> JobRow | None:  # noqa: ASYNC109
        """The same in the async world."""

    @property
    def migrations(self) -> Sequence[Migration]:
        """The migrations of this release, in order."""

    def reserve_connections(self, connections: int) -> None:
        """Let pools grow to so many connections: every handler may need one."""

    def close(self) -> None:
        """Close the connections of the sync world."""

    async def aclose(self) -> None:
        """Close the connections of this event loop."""
