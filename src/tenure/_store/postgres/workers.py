"""Workers' presence: who is there, how busy, who is asked to drain."""

from collections.abc import Mapping, Sequence

from tenure._model.audit import By
from tenure._model.ids import Json, WorkerId
from tenure._model.worker import HeartbeatResult, NewWorker, WorkerRow, WorkerState
from tenure._store.postgres.statements import Jsonb, QueryBase
from tenure._store.steps import Op, atomic


class WorkerQueries(QueryBase):
    """The part of the store that knows the workers. No lease depends on it."""

    def register(self, worker: NewWorker) -> Op[None]:
        """Make a worker known."""
        yield self._query(
            "register",
            id=worker.id,
            name=worker.name,
            host=worker.host,
            pid=worker.pid,
            version=worker.version,
            language=worker.language,
            queues=list(worker.queues),
            slots=worker.slots,
        )

    def heartbeat(
        self, worker: WorkerId, *, state: WorkerState, running: int, meta: Json = None
    ) -> Op[HeartbeatResult]:
        """Renew a worker's presence; the answer says whether it was asked to drain."""
        rows = yield self._query(
            "heartbeat",
            id=worker,
            state=state,
            running=running,
            meta=None if meta is None else Jsonb(meta),
        )
        return HeartbeatResult(
            known=bool(rows), drain_requested=bool(rows and rows[0]["drain_requested"])
        )

    def heartbeat_many(self, running: Mapping[WorkerId, int]) -> Op[Mapping[WorkerId, bool]]:
        """Renew the presence of several workers; the answer has those that are known, and whether
        each was asked to drain."""
        rows = yield self._query(
            "heartbeat_many", ids=list(running), running=list(running.values())
        )
        return {WorkerId(row["id"]): row["drain_requested"] for row in rows}

    @atomic
    def drain(self, worker: WorkerId, by: By) -> Op[bool]:
        """Ask a worker to drain; False if it is unknown."""
        rows = yield self._query("drain", id=worker)
        if rows:
            yield from self._audit(by, "worker.drain", [f"worker:{worker}"])
        return bool(rows)

    def list(self) -> Op[Sequence[WorkerRow]]:
        """All known workers."""
        rows = yield self._query("workers")
        return [WorkerRow(**{**row, "state": WorkerState(row["state"])}) for row in rows]
