"""Commands on queues, workers and settings; leases, audit, system.

What an operator can look at beside jobs and figures: leases, the pace of queues, the audit, what
the installation stands on. Nothing here changes anything; each look is bounded.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from tenure._model.audit import AuditPage, AuditRow, By
from tenure._model.ids import Json, WorkerId
from tenure._model.overview import System
from tenure._model.queue import QueueRow
from tenure._model.stats import Depth, Throughput
from tenure._model.worker import WorkerRow
from tenure._rules import runtime_settings as known
from tenure._rules.redaction import Redactor
from tenure._store.steps import Op
from tenure.admin._commands import AdminCommand, AsyncTwin, CommandGroup, check_page_size
from tenure.errors import InvalidValue


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting as it is in force; `changed` says that it was set at run time."""

    name: str
    value: Json
    built_in: Json
    changed: bool


class Queues(CommandGroup):
    """Commands on queues: `app.admin.queues`."""

    @AdminCommand
    def list(self) -> Op[Sequence[QueueRow]]:
        """What operators have set for queues; one without a row has the defaults."""
        return self._store.queues.list()

    alist: Final = AsyncTwin(list)  # noqa: A003 - the verb above, by its name

    @AdminCommand
    def pause(self, name: str, by: By, *, until: datetime | None = None) -> Op[QueueRow]:
        """Let nothing be claimed from a queue (`*`: from any), until then or until resumed."""
        return self._store.queues.pause(name, by, until=until)

    apause: Final = AsyncTwin(pause)

    @AdminCommand
    def resume(self, name: str, by: By) -> Op[QueueRow]:
        """Let a paused queue go on."""
        return self._store.queues.resume(name, by)

    aresume: Final = AsyncTwin(resume)

    @AdminCommand
    def limit(self, name: str, limit: int | None, by: By) -> Op[QueueRow]:
        """Let at most `limit` jobs of a queue (`*`: of all) run at once; None takes it away."""
        return self._store.queues.limit(name, limit, by)

    alimit: Final = AsyncTwin(limit)

    @AdminCommand
    def configure(
        self, name: str, by: By, *, lease: timedelta | None, max_attempts: int | None
    ) -> Op[QueueRow]:
        """Give a queue its own lease and attempts; None leaves them to the settings."""
        return self._store.queues.configure(name, by, lease=lease, max_attempts=max_attempts)

    aconfigure: Final = AsyncTwin(configure)

    @AdminCommand
    def depths(self) -> Op[Sequence[Depth]]:
        """How much there is in each known queue: exact up to 10,000 each, zeros too."""
        return self._store.stats.depths()

    adepths: Final = AsyncTwin(depths)

    @AdminCommand
    def throughput(self, queues: Sequence[str], *, minutes: int = 30) -> Op[Throughput]:
        """What completed and failed in each of these queues, at most 500, over the last minutes.
        A minute is counted some ten seconds after its end."""
        if len(queues) > _MOST_QUEUES:
            raise InvalidValue(f"{len(queues):,} queues are more than {_MOST_QUEUES} at once")
        if not 1 <= minutes <= _MOST_MINUTES:
            raise InvalidValue(f"{minutes} minutes are not within 1 to {_MOST_MINUTES:,}")
        return self._store.inspection.throughput(queues, minutes=minutes)

    athroughput: Final = AsyncTwin(throughput)


class Workers(CommandGroup):
    """Commands on workers: `app.admin.workers`."""

    @AdminCommand
    def list(self) -> Op[Sequence[WorkerRow]]:
        """All known workers; `heartbeat_age` tells the living from the stale."""
        return self._store.workers.list()

    alist: Final = AsyncTwin(list)  # noqa: A003 - the verb above, by its name

    @AdminCommand
    def drain(self, worker: UUID, by: By) -> Op[bool]:
        """Ask a worker to take no new job and to end; False if it is unknown."""
        return self._store.workers.drain(WorkerId(worker), by)

    adrain: Final = AsyncTwin(drain)


class RuntimeSettings(CommandGroup):
    """Commands on settings: `app.admin.settings`."""

    @AdminCommand
    def list(self) -> Op[Sequence[Setting]]:
        """All settings as they are in force."""
        changed = yield from self._store.settings.changed()
        return [
            Setting(name, changed.get(name, built_in), built_in, changed=name in changed)
            for name, built_in in known.BUILT_IN.items()
        ]

    alist: Final = AsyncTwin(list)  # noqa: A003 - the verb above, by its name

    @AdminCommand
    def set(self, name: str, value: Json, by: By) -> Op[None]:
        """Change a setting for the whole installation at run time."""
        return self._store.settings.set(name, value, by)

    aset: Final = AsyncTwin(set)  # noqa: A003 - the verb above, by its name

    @AdminCommand
    def reset(self, name: str, by: By) -> Op[None]:
        """Take a setting back to its built-in value."""
        known.check_name(name)
        return self._store.settings.reset(name, by)

    areset: Final = AsyncTwin(reset)

    @AdminCommand
    def redactor(self) -> Op[Redactor]:
        """What hides the fields that the setting `redact` names now, and those built in. An edge
        passes through it whatever it shows of jobs, attempts, items and schedules."""
        return redactor_of((yield from self._store.settings.changed()))

    aredactor: Final = AsyncTwin(redactor)


def redactor_of(changed: Mapping[str, Json]) -> Redactor:
    """What hides the fields that the settings name, and those built in."""
    return Redactor(changed.get("redact", known.BUILT_IN["redact"]))


_MOST_QUEUES = 500
_MOST_MINUTES = 24 * 60


class Audit(CommandGroup):
    """The audit log: `app.admin.audit`."""

    @AdminCommand
    def list(
        self, target: str, *, count: int = 100, before: int | None = None
    ) -> Op[Sequence[AuditRow]]:
        """What was done to a target (`job:5`, `queue:mail`), newest first, below an id."""
        return self._store.audit.list(target, count=count, before=before)

    alist: Final = AsyncTwin(list)  # noqa: A003 - the verb above, by its name

    @AdminCommand
    def search(
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
        check_page_size(count)
        return self._store.audit.search(
            target=target,
            actor=actor,
            source=source,
            action=action,
            enqueued=enqueued,
            count=count,
            before=before,
        )

    asearch: Final = AsyncTwin(search)


class SystemCommands(CommandGroup):
    """What the installation runs on."""

    @AdminCommand
    def system(self) -> Op[System]:
        """What the installation stands on: the server, how durable a commit is, who keeps dead rows
        from being removed, how many days of history there are."""
        return self._store.inspection.system()

    asystem: Final = AsyncTwin(system)
