"""Queue settings that operators change at run time. The SQL statements enforce them."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime, timedelta

from tenure._model.audit import By
from tenure._model.ids import Json
from tenure._model.queue import EVERY_QUEUE, QueueRow
from tenure._rules.leasing import check_ttl
from tenure._rules.payload import check_name
from tenure._rules.quotas import QUEUE_QUOTAS, check_quotas
from tenure._rules.runtime_settings import check_setting
from tenure._store.postgres.statements import Jsonb, QueryBase
from tenure._store.steps import Op, atomically
from tenure.errors import InvalidValue


class QueueQueries(QueryBase):
    def pause(self, name: str, by: By, *, until: datetime | None = None) -> Op[QueueRow]:
        """Stop claims from a queue (`*`: all queues) until a given time or until it's resumed."""
        paused = {"paused_until": until, "paused_by": by.actor, "paused_reason": by.reason}
        return (yield from self._change(name, "pause", by, paused=True, **paused))

    def resume(self, name: str, by: By) -> Op[QueueRow]:
        return self._change(name, "resume", by, paused=False)

    def limit(self, name: str, limit: int | None, by: By) -> Op[QueueRow]:
        """Limit how many of a queue's jobs run concurrently (`*`: in all queues).

        None removes the limit.
        """
        if limit is not None and limit < 0:
            raise InvalidValue(
                f"limit must be 0 or more, got {limit}; 0 stops a queue, None removes the limit"
            )
        return (yield from self._change(name, "limit", by, max_running=limit))

    def configure(
        self, name: str, by: By, *, lease: timedelta | None, max_attempts: int | None
    ) -> Op[QueueRow]:
        """Set a queue's own lease and attempts. None falls back to the installation's settings."""
        if name == EVERY_QUEUE:
            raise InvalidValue(
                "'*' stands for all queues and has no options; change the settings instead"
            )
        if lease is not None:
            check_ttl(lease)
        if max_attempts is not None:
            check_setting("max_attempts", max_attempts)
        changed = {"lease": lease, "max_attempts": max_attempts}
        return (yield from self._change(name, "configure", by, **changed))

    def set_quotas(self, name: str, quotas: Mapping[str, float], by: By) -> Op[QueueRow]:
        """Replace the quotas that the server enforces for a queue."""
        if name == EVERY_QUEUE:
            raise InvalidValue("'*' stands for all queues and has no quotas; name one queue")
        known = check_quotas(quotas, QUEUE_QUOTAS)
        return (yield from self._change(name, "quota", by, quotas=Jsonb(known)))

    def _change(self, name: str, action: str, by: By, **changes: object) -> Op[QueueRow]:
        if name != EVERY_QUEUE:
            check_name(name, "queue")
        return (yield from atomically(self._changed(name, action, by, changes)))

    def _changed(
        self, name: str, action: str, by: By, changes: Mapping[str, object]
    ) -> Op[QueueRow]:
        before = QueueRow(**(yield self._query("lock_queue", name=name))[0])
        params: dict[str, object] = {
            "name": name,
            "paused": before.paused_at is not None,
            "is_new_pause": action == "pause",
            "paused_until": before.paused_until,
            "paused_by": before.paused_by,
            "paused_reason": before.paused_reason,
            "max_running": before.max_running,
            "lease": before.lease,
            "max_attempts": before.max_attempts,
            "quotas": Jsonb(dict(before.quotas)),
        } | dict(changes)
        after = QueueRow(**(yield self._query("change_queue", **params))[0])
        yield from self._audit(
            by, f"queue.{action}", [f"queue:{name}"], before=_plain(before), after=_plain(after)
        )
        return after

    def list(self) -> Op[Sequence[QueueRow]]:
        rows = yield self._query("queues")
        return [QueueRow(**row) for row in rows]


def _plain(row: QueueRow) -> dict[str, Json]:
    """Return a queue's row as JSON for the audit, without empty fields."""
    fields = {k: v for k, v in asdict(row).items() if v is not None and v != {}}
    return {k: v if isinstance(v, int | dict) else str(v) for k, v in fields.items()}
