"""The handle that enqueue returns. Use it to read the job or wait for it to end."""

from collections.abc import Container
from datetime import timedelta
from typing import Any, Generic, TypeVar

from tenure._model.ids import JobId
from tenure._model.job import JobRow, State
from tenure._rules import serialization
from tenure._store.engine import Engine
from tenure._store.steps import Op
from tenure.config import duration
from tenure.errors import Error, JobCancelled, JobFailed, NotReady

R_co = TypeVar("R_co", covariant=True)
_HINT = "call wait() or get() first, and check the state"


class Handle(Generic[R_co]):
    """An enqueued job. Use it to read the job's state, wait for it to end, and get its result.

    `enqueue` and `task.handle` create handles. A handle cannot change the job.

    Attributes:
        id: The job's id.
        created: False if a job already held the key, or if the handle came from `task.handle`.

    Example::

        from tenure import Tenure
        from tenure.testing import drain

        app = Tenure()

        @app.task
        def add(a: int, b: int) -> int:
            return a + b

        handle = add.enqueue(2, 3)
        drain(app)  # in tests; otherwise a worker runs the job
        assert handle.wait(timeout=60).result == 5
    """

    __slots__ = ("_engine", "_error", "_looked", "_returns", "_row", "_tasks", "created", "id")

    def __init__(
        self,
        engine: Engine,
        job_id: JobId,
        *,
        created: bool = True,
        returns: Any = None,
        tasks: Container[str] | None = None,
    ) -> None:
        self._engine = engine
        self._returns = returns
        self._tasks = tasks
        self.id: JobId = job_id
        self.created: bool = created
        self._row: JobRow | None = None
        self._looked = False
        self._error: Error | None = None

    def __repr__(self) -> str:
        return f"Handle({self.id}{'' if self.created else ', created=False'})"

    def get(self) -> JobRow | None:
        """Read the job from the database.

        Returns:
            The job's current row, or None if it doesn't exist or was removed.
        """
        row = self._saw(self._engine.run(self._engine.store.jobs.get(self.id)))
        self._learn()
        return row

    async def aget(self) -> JobRow | None:
        """Async version of `get`."""
        row = self._saw(await self._engine.arun(self._engine.store.jobs.get(self.id)))
        await self._alearn()
        return row

    def wait(self, timeout: float | timedelta | None = None) -> "Handle[R_co]":
        """Wait until the job ends. The database notifies this handle when it does.

        Args:
            timeout: How long to wait (default: forever).

        Returns:
            This handle.

        Raises:
            TimeoutError: The job didn't end in time.
        """
        self._saw(self._engine.wait(self.id, _seconds(timeout)))
        self._learn()
        return self._ended()

    async def wait_async(self, timeout: float | timedelta | None = None) -> "Handle[R_co]":  # noqa: ASYNC109 - one shape with wait
        """Async version of `wait`.

        Args:
            timeout: How long to wait (default: forever).

        Returns:
            This handle.

        Raises:
            TimeoutError: The job didn't end in time.
        """
        self._saw(await self._engine.wait_async(self.id, _seconds(timeout)))
        await self._alearn()
        return self._ended()

    def _saw(self, row: JobRow | None) -> JobRow | None:
        if row is not None and self._tasks is not None and row.task not in self._tasks:
            row = None
        self._row = None if row is None else self._engine.sealing.open_job(row)
        self._looked = True
        return self._row

    def _learn(self) -> None:
        """Read the last attempt's error now, because `result` can't query the database."""
        if self.state is State.FAILED:
            self._error = self._engine.run(self._last_error())

    async def _alearn(self) -> None:
        if self.state is State.FAILED:
            self._error = await self._engine.arun(self._last_error())

    def _last_error(self) -> Op[Error | None]:
        for last in (yield from self._engine.store.jobs.last_attempts([self.id])):
            if last.error_type is not None:
                return Error(last.error_type, self._opened(last.error_message or ""))
        return None

    def _opened(self, text: str) -> str:
        task = "" if self._row is None else self._row.task
        return self._engine.sealing.open_text(text, task, "error")

    def _ended(self) -> "Handle[R_co]":
        if self._row is not None and self._row.state.is_live:
            raise TimeoutError(
                f"job {self.id} is still {self._row.state}; wait longer, or see: "
                f"tenure job why {self.id}"
            )
        return self

    @property
    def state(self) -> State | None:
        """The state as of the last `get` or `wait`, or None before that."""
        return self._row.state if self._row else None

    @property
    def done_reason(self) -> str | None:
        """Why the job ended, as of the last `get` or `wait`, or None."""
        return self._row.done_reason if self._row else None

    @property
    def result(self) -> R_co:
        """The job's result, converted to the task's return annotation.

        Raises:
            NotReady: The job had not ended at the last `get` or `wait`.
            JobFailed: The job failed.
            JobCancelled: The job was cancelled.
        """
        if self._row is None or self._row.state is not State.COMPLETED:
            raise self._without_result()
        stored = self._engine.sealing.open_value(self._row.result, self._row.task, "result")
        result: R_co = serialization.load(stored, self._returns, what="the result")
        return result

    def _without_result(self) -> NotReady:
        row = self._row
        if row is None:
            reason = "it does not exist" if self._looked else "this handle has not read it yet"
            return NotReady(f"job {self.id} has no result, {reason}; {_HINT}")
        reason = f" ({row.done_reason})" if row.done_reason else ""
        see = f"see: tenure job show {self.id}"
        match row.state:
            case State.FAILED:
                error = f": {self._error.type}: {self._error.message}" if self._error else ""
                text = f"job {self.id} failed{reason}{error}; {see}"
                return JobFailed(text, row.done_reason, self._error)
            case State.CANCELLED:
                return JobCancelled(f"job {self.id} was cancelled{reason}; {see}", row.done_reason)
            case _:
                return NotReady(f"job {self.id} has no result, it is {row.state}; {_HINT}")


def _seconds(timeout: float | timedelta | None) -> float | None:
    return None if timeout is None else duration(timeout).total_seconds()
