"""Commands on queues, workers and settings; leases, audit, system.

What an operator can look at beside jobs and figures: leases, the pace of queues, the audit, what
the installation stands on. Nothing here changes anything; each look is bounded.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from tenure._model.audit import AuditPage, By
from tenure._model.ids import Json, WorkerId
from tenure._model.lease import LeaseRow
from tenure._model.overview import System
from tenure._model.queue import QueueRow
from tenure._model.stats import Throughput
from tenure._model.worker import WorkerRow
from tenure._rules import runtime_settings as known
from tenure._rules.redaction import Redactor
from tenure._store.steps import Op
from tenure.admin._commands import AdminCommand, AsyncTwin, CommandGroup
from tenure.errors import InvalidValue


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting as it is in force; `changed` says that it was set at run time."""

    name: str
    value: Json
    built_in: Json
    changed: bool


class Installation(CommandGroup):
    """The verbs over queues, workers and settings."""

    @AdminCommand
    def queues(self) -> Op[Sequence[QueueRow]]:
        """What operators have set for queues; one without a row has the defaults."""
        return self._store.queues()

    aqueues: Final = AsyncTwin(queues)

    @AdminCommand
    def pause_queue(self, name: str, by: By, *, until: datetime | None = None) -> Op[QueueRow]:
        """Let nothing be claimed from a queue (`*`: from any), until then or until resumed."""
        return self._store.pause_queue(name, by, until=until)

    apause_queue: Final = AsyncTwin(pause_queue)

    @AdminCommand
    def resume_queue(self, name: str, by: By) -> Op[QueueRow]:
        """Let a paused queue go on."""
        return self._store.resume_queue(name, by)

    aresume_queue: Final = AsyncTwin(resume_queue)

    @AdminCommand
    def limit_queue(self, name: str, limit: int | None, by: By) -> Op[QueueRow]:
        """Let at most `limit` jobs of a queue (`*`: of all) run at once; None takes it away."""
        return self._store.limit_queue(name, limit, by)

    alimit_queue: Final = AsyncTwin(limit_queue)

    @AdminCommand
    def configure_queue(
        self, name: str, by: By, *, lease: timedelta | None, max_attempts: int | None
    ) -> Op[QueueRow]:
        """Give a queue its own lease and attempts; None leaves them to the settings."""
        return self._store.configure_queue(name, by, lease=lease, max_attempts=max_attempts)

    aconfigure_queue: Final = AsyncTwin(configure_queue)

    @AdminCommand
    def workers(self) -> Op[Sequence[WorkerRow]]:
        """All known workers; `beat_age` tells the living from the stale."""
        return self._store.workers()

    aworkers: Final = AsyncTwin(workers)

    @AdminCommand
    def drain(self, worker: UUID, by: By) -> Op[bool]:
        """Ask a worker to take no new job and to end; False if it is unknown."""
        return self._store.drain(WorkerId(worker), by)

    adrain: Final = AsyncTwin(drain)

    @AdminCommand
    def settings(self) -> Op[Sequence[Setting]]:
        """All settings as they are in force."""
        changed = yield from self._store.settings()
        return [
            Setting(name, changed.get(name, built_in), built_in, changed=name in changed)
            for name, built_in in known.BUILT_IN.items()
        ]

    asettings: Final = AsyncTwin(settings)

    @AdminCommand
    def set_setting(self, name: str, value: Json, by: By) -> Op[None]:
        """Change a setting for the whole installation at run time."""
        return self._store.set_setting(name, value, by)

    aset_setting: Final = AsyncTwin(set_setting)

    @AdminCommand
    def reset_setting(self, name: str, by: By) -> Op[None]:
        """Take a setting back to its built-in value."""
        known.check_name(name)
        return self._store.reset_setting(name, by)

    areset_setting: Final = AsyncTwin(reset_setting)

    @AdminCommand
    def redactor(self) -> Op[Redactor]:
        """What hides the fields that the setting `redact` names now, and those built in. An edge
        passes through it whatever it shows of jobs, attempts, items and schedules."""
        return redactor_of((yield from self._store.settings()))

    aredactor: Final = AsyncTwin(redactor)


def redactor_of(changed: Mapping[str, Json]) -> Redactor:
    """What hides the fields that the settings name, and those built in."""
    return Redactor(changed.get("redact", known.BUILT_IN["redact"]))


_LONGEST_PAGE = 1000
_MOST_QUEUES = 500
_MOST_MINUTES = 24 * 60


class InspectionCommands(CommandGroup):
    """The verbs that show."""

    @AdminCommand
    def leases(
        self, *, worker: UUID | None = None, queue: str | None = None, count: int = 100
    ) -> Op[Sequence[LeaseRow]]:
        """Leases of running jobs, those that end first before others: of a worker, of a queue, or
        of all. They are looked for among the 10,000 that end first."""
        _check_count(count)
        of = None if worker is None else WorkerId(worker)
        return self._store.leases(worker=of, queue=queue, count=count)

    aleases: Final = AsyncTwin(leases)

    @AdminCommand
    def throughput(self, queues: Sequence[str], *, minutes: int = 30) -> Op[Throughput]:
        """What completed and failed in each of these queues, at most 500, over the last minutes.
        A minute is counted some ten seconds after its end."""
        if len(queues) > _MOST_QUEUES:
            raise InvalidValue(f"{len(queues):,} queues are more than {_MOST_QUEUES} at once")
        if not 1 <= minutes <= _MOST_MINUTES:
            raise InvalidValue(f"{minutes} minutes are not within 1 to {_MOST_MINUTES:,}")
        return self._store.throughput(queues, minutes=minutes)

    athroughput: Final = AsyncTwin(throughput)

    @AdminCommand
    def search_audit(
        self,
        *,
        target: str | None = None,
        actor: str | None = None,
        source: str | None = None,
        action: str | None = None,
        enqueued: bool = True,
        count: int = 100,
        before: int | None = None,
    ) -> Op[AuditPage]:
        """What was done, newest first, below an id: to a target, by who has `actor` in the name,
        from a source, by an action (`queue.pause`) or all of a kind (`queue`); with the jobs that
        were enqueued over HTTP, or without. Some 100,000 rows are searched at a time, so that a
        page may come short."""
        _check_count(count)
        return self._store.search_audit(
            target=target,
            actor=actor,
            source=source,
            action=action,
            enqueued=enqueued,
            count=count,
            before=before,
        )

    asearch_audit: Final = AsyncTwin(search_audit)

    @AdminCommand
    def system(self) -> Op[System]:
        """What the installation stands on: the server, how durable a commit is, who keeps dead rows
        from being removed, how many days of history there are."""
        return self._store.system()

    asystem: Final = AsyncTwin(system)


def _check_count(count: int) -> None:
    if not 1 <= count <= _LONGEST_PAGE:
        raise InvalidValue(f"a page of {count} is not within 1 to {_LONGEST_PAGE:,}")
