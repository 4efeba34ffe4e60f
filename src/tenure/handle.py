"""What enqueue returns: a job to look at and to wait for. It cannot change the job."""

from collections.abc import Container
from datetime import timedelta
from typing import Any, Generic, TypeVar

from tenure._model.ids import JobId
from tenure._model.job import JobRow, State
from tenure._rules import values
from tenure._store.engine import Engine
from tenure.config import duration
from tenure.errors import NotReady

R_co = TypeVar("R_co", covariant=True)


class Handle(Generic[R_co]):
    """One enqueued job. `created` is False when the key already had a job, or it was found by
    its id."""

    __slots__ = ("_engine", "_looked", "_returns", "_row", "_tasks", "created", "id")

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

    def __repr__(self) -> str:
        return f"Handle({self.id}{'' if self.created else ', created=False'})"

    def get(self) -> JobRow | None:
        """The job as it is now, or None if it is no longer kept."""
        return self._saw(self._engine.run(self._engine.store.get(self.id)))

    async def aget(self) -> JobRow | None:
        """The job as it is now, or None if it is no longer kept."""
        return self._saw(await self._engine.arun(self._engine.store.get(self.id)))

    def wait(self, timeout: float | timedelta | None = None) -> "Handle[R_co]":
        """Wait until the job has ended, woken by its end; TimeoutError when the time is up."""
        self._saw(self._engine.wait(self.id, _seconds(timeout)))
        return self._ended()

    async def await_end(self, timeout: float | timedelta | None = None) -> "Handle[R_co]":  # noqa: ASYNC109 - one shape with wait
        """Wait until the job has ended, woken by its end; TimeoutError when the time is up."""
        self._saw(await self._engine.await_end(self.id, _seconds(timeout)))
        return self._ended()

    def _saw(self, row: JobRow | None) -> JobRow | None:
        if row is not None and self._tasks is not None and row.task not in self._tasks:
            row = None
        self._row, self._looked = row, True
        return row

    def _ended(self) -> "Handle[R_co]":
        if self._row is not None and self._row.state.is_live:
            raise TimeoutError(f"job {self.id} is still {self._row.state}")
        return self

    @property
    def state(self) -> State | None:
        """The job's state when it was last looked at; None if it was not, or is gone."""
        return self._row.state if self._row else None

    @property
    def result(self) -> R_co:
        """What the job returned, rebuilt as the task's annotation says; NotReady unless it was
        seen completed."""
        if self._row is None or self._row.state is not State.COMPLETED:
            seen = "no longer kept" if self._looked else "not looked at yet"
            if self._row is not None:
                seen = self._row.state
            why = self._row.done_reason if self._row else None
            raise NotReady(
                f"job {self.id} has no result: it is {seen}{f' ({why})' if why else ''}; "
                "call wait() or get() first, and look at its state"
            )
        result: R_co = values.load(self._row.result, self._returns, what="the result")
        return result


def _seconds(timeout: float | timedelta | None) -> float | None:
    return None if timeout is None else duration(timeout).total_seconds()
