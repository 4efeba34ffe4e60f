"""Queues: what operators set for them at run time, enforced inside the statements."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime, timedelta

from tenure._model.audit import By
from tenure._model.ids import Json
from tenure._model.queue import EVERY_QUEUE, QueueRow
from tenure._rules.leasing import check_ttl
from tenure._rules.payload import check_name
from tenure._rules.runtime_settings import check_setting
from tenure._store.postgres.statements import QueryBase
from tenure._store.steps import Op, atomically
from tenure.errors import InvalidValue


class QueueQueries(QueryBase):
    """The part of the store that keeps what operators set for queues."""

    def pause(self, name: str, by: By, *, until: datetime | None = None) -> Op[QueueRow]:
        """Let nothing be claimed from a queue (`*`: from any), until then or until resumed."""
        paused = {"paused_until": until, "paused_by": by.actor, "paused_reason": by.reason}
        return (yield from self._change(name, "pause", by, paused=True, **paused))

    def resume(self, name: str, by: By) -> Op[QueueRow]:
        """Let a paused queue go on."""
        return self._change(name, "resume", by, paused=False)

    def limit(self, name: str, limit: int | None, by: By) -> Op[QueueRow]:
        """Let at most `limit` jobs of a queue (`*`: of all) run at once; None takes it away."""
        if limit is not None and limit < 0:
            raise InvalidValue(f"a limit of {limit} is negative; 0 stops a queue, None frees it")
        return (yield from self._change(name, "limit", by, max_running=limit))

    def configure(
        self, name: str, by: By, *, lease: timedelta | None, max_attempts: int | None
    ) -> Op[QueueRow]:
        """Give a queue its own lease and attempts; None leaves them to the settings."""
        if name == EVERY_QUEUE:
            raise InvalidValue("'*' is no queue of its own; change the settings instead")
        if lease is not None:
            check_ttl(lease)
        if max_attempts is not None:
            check_setting("max_attempts", max_attempts)
        changed = {"lease": lease, "max_attempts": max_attempts}
        return (yield from self._change(name, "configure", by, **changed))

    def _change(self, name: str, action: str, by: By, **changes: object) -> Op[QueueRow]:
        if name != EVERY_QUEUE:
            check_name(name, "queue")
        return (yield from atomically(self._changed(name, action, by, changes)))

    def _changed(
        self, name: str, action: str, by: By, changes: Mapping[str, object]
    ) -> Op[QueueRow]:
        before = QueueRow(**(yield self._query("lock_queue", name=name))[0])
        wanted: dict[str, object] = {
            "name": name,
            "paused": before.paused_at is not None,
            "paused_anew": action == "pause",
            "paused_until": before.paused_until,
            "paused_by": before.paused_by,
            "paused_reason": before.paused_reason,
            "max_running": before.max_running,
            "lease": before.lease,
            "max_attempts": before.max_attempts,
        } | dict(changes)
        after = QueueRow(**(yield self._query("change_queue", **wanted))[0])
        yield from self._audit(
            by, f"queue.{action}", [f"queue:{name}"], before=_plain(before), after=_plain(after)
        )
        return after

    def list(self) -> Op[Sequence[QueueRow]]:
        """What operators have set for queues."""
        rows = yield self._query("queues")
        return [QueueRow(**row) for row in rows]


def _plain(row: QueueRow) -> dict[str, Json]:
    """A queue's row as JSON for the audit: instants and durations as text, absent ones left out."""
    return {k: v if isinstance(v, int) else str(v) for k, v in asdict(row).items() if v is not None}
