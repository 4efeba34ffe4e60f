"""Declare the rules for notices, and look for late queues and lost workers."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from tenure._clock import boottime
from tenure._model.notice import NewNoticeRule, NoticeEvent
from tenure._model.queue import EVERY_QUEUE
from tenure._rules.liveness import FRESH, is_paused
from tenure._rules.notices import is_about_notices
from tenure._services.base import Service, log
from tenure._store.engine import ServiceConnection
from tenure._store.port import Store
from tenure._store.steps import Op
from tenure.errors import InvalidValue, QueryFailed

_PAUSE = timedelta(seconds=15)
# A worker that is silent for this long is lost, not slow.
_SILENT = max(FRESH, timedelta(minutes=1))
# After a longer gap between two passes, we may have been asleep, or the database away. Then all
# workers look lost until they have sent a heartbeat.
_GAP = 4 * _PAUSE.total_seconds()


class NoticeService(Service):
    """Any process with a scheduler runs one. Without a rule, a pass is one small query."""

    name = "notices"

    def __init__(
        self,
        store: Store,
        link: ServiceConnection,
        *,
        program: str,
        version: Sequence[int],
        rules: Sequence[NewNoticeRule],
    ) -> None:
        super().__init__(_PAUSE)
        self._store = store
        self._link = link
        self._program = program
        self._version = version
        self._rules = list(rules)
        self._is_declared = False
        self._seen_at = -_GAP

    async def tick(self) -> int:
        now = boottime()
        if not self._is_declared:
            await self._declare()
        has_gap, self._seen_at = now - self._seen_at > _GAP, now
        await self._link.run(self._look(has_gap=has_gap))
        return 0

    async def _declare(self) -> None:
        op = self._store.notices.declare(self._program, self._version, self._rules)
        try:
            declared = await self._link.run(op)
        except (InvalidValue, QueryFailed) as error:
            log.error("notices: cannot declare the rules of %s: %s", self._program, error)
        else:
            for action in ("made", "changed", "removed"):
                if names := getattr(declared, action):
                    log.info("notices: %s: %s by %s", ", ".join(names), action, self._program)
            if declared.refused:
                log.warning(
                    "notices: %s: kept, another program or a newer version of %s has this rule",
                    ", ".join(declared.refused),
                    self._program,
                )
        self._is_declared = True

    def _look(self, *, has_gap: bool) -> Op[None]:
        events = {rule.event for rule in (yield from self._store.notices.list())}
        if NoticeEvent.WORKER_LOST in events and not has_gap:
            yield from self._store.notices.report_lost_workers(_SILENT)
        if NoticeEvent.QUEUE_BEHIND in events:
            yield from report_late_queues(self._store)

    async def close(self) -> None:
        await self._link.close()


def report_late_queues(store: Store) -> Op[int]:
    """Report how long the oldest job of each queue has waited. The rules have the thresholds."""
    rows = {row.name: row for row in (yield from store.queues.list())}
    at = datetime.now(UTC)
    if is_paused(rows.get(EVERY_QUEUE), at):
        return 0
    facts = []
    for depth in (yield from store.stats.depths(most=1)):
        waited = depth.oldest_due_age
        if waited is None or is_about_notices(depth.queue) or is_paused(rows.get(depth.queue), at):
            continue
        text = at.isoformat().replace("+00:00", "Z")
        facts.append(
            {
                "key": depth.queue,
                "queue": depth.queue,
                "task": "",
                "count": 1,
                "first_at": text,
                "last_at": text,
                "waited": round(waited.total_seconds(), 3),
            }
        )
    return (yield from store.notices.report(NoticeEvent.QUEUE_BEHIND, facts)) if facts else 0
