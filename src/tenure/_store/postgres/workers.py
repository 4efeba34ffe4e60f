"""Worker presence: heartbeats, load, drain requests."""

from collections.abc import Mapping, Sequence

from tenure._model.audit import By
from tenure._model.ids import Json, WorkerId
from tenure._model.worker import HeartbeatResult, NewWorker, WorkerRow, WorkerState
from tenure._rules.readable import worker_meta
from tenure._store.postgres.statements import Jsonb, QueryBase
from tenure._store.steps import Op, atomic


class WorkerQueries(QueryBase):
    def register(self, worker: NewWorker) -> Op[None]:
        row = {
            "id": worker.id,
            "name": worker.name,
            "host": worker.host,
            "pid": worker.pid,
            "version": worker.version,
            "language": worker.language,
            "queues": list(worker.queues),
            "slots": worker.slots,
        }
        if worker.listed is None:
            yield self._query("register", **row)
        else:
            yield self._query("register_listed", **row, listed=list(worker.listed))

    def heartbeat(
        self, worker: WorkerId, *, state: WorkerState, running: int, meta: Json = None
    ) -> Op[HeartbeatResult]:
        """Record a worker's heartbeat, and return whether the worker should drain."""
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
        """Record several workers' heartbeats.

        Return the known workers, and whether each should drain.
        """
        rows = yield self._query(
            "heartbeat_many", ids=list(running), running=list(running.values())
        )
        return {WorkerId(row["id"]): row["drain_requested"] for row in rows}

    @atomic
    def drain(self, worker: WorkerId, by: By) -> Op[bool]:
        """Ask a worker to drain. Return False if the worker is unknown."""
        rows = yield self._query("drain", id=worker)
        if rows:
            yield from self._audit(by, "worker.drain", [f"worker:{worker}"])
        return bool(rows)

    def list(self) -> Op[Sequence[WorkerRow]]:
        rows = yield self._query("workers")
        return [
            WorkerRow(
                **{**row, "state": WorkerState(row["state"]), "meta": worker_meta(row["meta"])}
            )
            for row in rows
        ]
