"""Commands for queues, workers and settings, the audit log, and system information."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from tenure._model.audit import AuditPage, AuditRow, By
from tenure._model.ids import Json, WorkerId
from tenure._model.overview import System
from tenure._model.queue import QueueRow, QueueUsage
from tenure._model.stats import Depth, Throughput
from tenure._model.worker import WorkerRow
from tenure._rules import runtime_settings as known
from tenure._rules.redaction import Redactor
from tenure._store.steps import Op
from tenure.admin._commands import AdminCommand, AsyncTwin, CommandGroup, check_page_size
from tenure.errors import InvalidValue


@dataclass(frozen=True, slots=True)
class Setting:
    """An installation setting.

    Attributes:
        name: The setting's name.
        value: The current value.
        built_in: The built-in default.
        changed: Whether an operator changed it.
    """

    name: str
    value: Json
    built_in: Json
    changed: bool


class Queues(CommandGroup):
    """Queue commands: `app.admin.queues`."""

    @AdminCommand
    def list(self) -> Op[Sequence[QueueRow]]:
        """List the queues that an operator configured or paused.

        Returns:
            Their rows. A queue without a row uses the defaults.
        """
        return self._store.queues.list()

    alist: Final = AsyncTwin(list)  # noqa: A003 - the command above

    @AdminCommand
    def pause(self, name: str, by: By, *, until: datetime | None = None) -> Op[QueueRow]:
        """Stop workers from taking jobs from a queue. Jobs that are already running finish.

        Args:
            name: The queue, or `"*"` for all queues.
            by: Who is doing this and why, for the audit log.
            until: When to resume, as an aware datetime (default: not until you call `resume`).

        Returns:
            The queue's row.
        """
        return self._store.queues.pause(name, by, until=until)

    apause: Final = AsyncTwin(pause)

    @AdminCommand
    def resume(self, name: str, by: By) -> Op[QueueRow]:
        """Resume a paused queue.

        Args:
            name: The queue, or `"*"` for all queues.
            by: Who is doing this and why, for the audit log.

        Returns:
            The queue's row.
        """
        return self._store.queues.resume(name, by)

    aresume: Final = AsyncTwin(resume)

    @AdminCommand
    def limit(self, name: str, limit: int | None, by: By) -> Op[QueueRow]:
        """Limit how many of a queue's jobs run concurrently.

        Args:
            name: The queue, or `"*"` for all queues together.
            limit: The concurrency limit, or None to remove it.
            by: Who is doing this and why, for the audit log.

        Returns:
            The queue's row.
        """
        return self._store.queues.limit(name, limit, by)

    alimit: Final = AsyncTwin(limit)

    @AdminCommand
    def configure(
        self, name: str, by: By, *, lease: timedelta | None, max_attempts: int | None
    ) -> Op[QueueRow]:
        """Set a queue's own lease and maximum attempts.

        Args:
            name: The queue.
            by: Who is doing this and why, for the audit log.
            lease: How long a claim lasts, or None to use the installation's setting.
            max_attempts: How many times to try a job, or None to use the installation's setting.

        Returns:
            The queue's row.
        """
        return self._store.queues.configure(name, by, lease=lease, max_attempts=max_attempts)

    aconfigure: Final = AsyncTwin(configure)

    @AdminCommand
    def quota(self, name: str, quotas: Mapping[str, float], by: By) -> Op[QueueRow]:
        """Replace a queue's quotas, which the server enforces for jobs enqueued over HTTP.

        Args:
            name: The queue.
            quotas: The quotas by name, such as `{"live_jobs": 1000}`. A missing quota means no
                limit.
            by: Who is doing this and why, for the audit log.

        Returns:
            The queue's row.

        Raises:
            InvalidValue: A quota does not exist, or is out of range.
        """
        return self._store.queues.set_quotas(name, quotas, by)

    aquota: Final = AsyncTwin(quota)

    @AdminCommand
    def usage(self, queues: Sequence[str], *, most: int = 100_000) -> Op[QueueUsage]:
        """Estimate the total live jobs and payload bytes in some queues, for quotas.

        Args:
            queues: The queues, as names or as prefixes such as `"mail.*"`.
            most: The maximum number of jobs to count.

        Returns:
            The estimate. The bytes come from a sample of 1,000 jobs.
        """
        return self._store.stats.usage(queues, most=most)

    ausage: Final = AsyncTwin(usage)

    @AdminCommand
    def depths(self) -> Op[Sequence[Depth]]:
        """Count the jobs in each known queue. Counts are exact up to 10,000.

        Returns:
            Each queue's depth, including empty queues.
        """
        return self._store.stats.depths()

    adepths: Final = AsyncTwin(depths)

    @AdminCommand
    def throughput(self, queues: Sequence[str], *, minutes: int = 30) -> Op[Throughput]:
        """Count completed and failed jobs per minute. Each minute appears about 10 s after it ends.

        Args:
            queues: Up to 500 queues.
            minutes: How many minutes to go back, 1 to 1,440 (default: 30).

        Returns:
            Each queue's throughput.

        Raises:
            InvalidValue: Too many queues, or `minutes` is out of range.
        """
        if len(queues) > _MOST_QUEUES:
            raise InvalidValue(
                f"queues must be at most {_MOST_QUEUES}, got {len(queues):,}; ask in parts"
            )
        if not 1 <= minutes <= _MOST_MINUTES:
            raise InvalidValue(f"minutes must be from 1 to {_MOST_MINUTES:,}, got {minutes}")
        return self._store.inspection.throughput(queues, minutes=minutes)

    athroughput: Final = AsyncTwin(throughput)


class Workers(CommandGroup):
    """Worker commands: `app.admin.workers`."""

    @AdminCommand
    def list(self) -> Op[Sequence[WorkerRow]]:
        """List all known workers.

        Returns:
            Their rows. A large `heartbeat_age` means the worker is stale.
        """
        return self._store.workers.list()

    alist: Final = AsyncTwin(list)  # noqa: A003 - the command above

    @AdminCommand
    def drain(self, worker: UUID, by: By) -> Op[bool]:
        """Shut down a worker gracefully: it takes no new jobs, finishes its current ones and exits.

        Args:
            worker: The worker's id.
            by: Who is doing this and why, for the audit log.

        Returns:
            False if the worker does not exist.
        """
        return self._store.workers.drain(WorkerId(worker), by)

    adrain: Final = AsyncTwin(drain)


class RuntimeSettings(CommandGroup):
    """Setting commands: `app.admin.settings`."""

    @AdminCommand
    def list(self) -> Op[Sequence[Setting]]:
        """List all settings with their current values."""
        changed = yield from self._store.settings.changed()
        return [
            Setting(name, changed.get(name, built_in), built_in, changed=name in changed)
            for name, built_in in known.BUILT_IN.items()
        ]

    alist: Final = AsyncTwin(list)  # noqa: A003 - the command above

    @AdminCommand
    def set(self, name: str, value: Json, by: By) -> Op[None]:
        """Change a setting for the whole installation. The change takes effect without a restart.

        Args:
            name: The setting's name.
            value: The new value.
            by: Who is doing this and why, for the audit log.

        Raises:
            InvalidValue: The setting does not exist, or the value is out of range.
        """
        return self._store.settings.set(name, value, by)

    aset: Final = AsyncTwin(set)  # noqa: A003 - the command above

    @AdminCommand
    def reset(self, name: str, by: By) -> Op[None]:
        """Restore a setting's built-in value.

        Args:
            name: The setting's name.
            by: Who is doing this and why, for the audit log.

        Raises:
            InvalidValue: The setting does not exist.
        """
        known.check_name(name)
        return self._store.settings.reset(name, by)

    areset: Final = AsyncTwin(reset)

    @AdminCommand
    def redactor(self) -> Op[Redactor]:
        """Return the redactor for the fields named in the `redact` setting.

        Before you display data from jobs, attempts, items or schedules, pass it through the
        redactor.

        Returns:
            The redactor, which also hides the built-in field names.
        """
        return redactor_of((yield from self._store.settings.changed()))

    aredactor: Final = AsyncTwin(redactor)


def redactor_of(changed: Mapping[str, Json]) -> Redactor:
    """Return the redactor for these settings, including the built-in field names."""
    return Redactor(changed.get("redact", known.BUILT_IN["redact"]))


_MOST_QUEUES = 500
_MOST_MINUTES = 24 * 60


class Audit(CommandGroup):
    """The audit log: `app.admin.audit`."""

    @AdminCommand
    def list(
        self, target: str, *, count: int = 100, before: int | None = None
    ) -> Op[Sequence[AuditRow]]:
        """List the changes to one target, newest first.

        Args:
            target: The target, such as `"job:5"` or `"queue:mail"`.
            count: The page size (default: 100).
            before: Only rows with a smaller id, to get the next page.

        Returns:
            Audit log rows.
        """
        return self._store.audit.list(target, count=count, before=before)

    alist: Final = AsyncTwin(list)  # noqa: A003 - the command above

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
        """Search the audit log, newest first.

        One call searches about 100,000 rows, so a page may be shorter than `count`.

        Args:
            target: Only this target, such as `"queue:mail"`.
            actor: Only actors whose name contains this text.
            source: Only this source, such as `"cli"`.
            action: An action such as `"queue.pause"`, or a kind such as `"queue"`.
            enqueued: Include jobs enqueued over HTTP (default: True).
            count: The page size, 1 to 1,000 (default: 100).
            before: Only rows with a smaller id, to get the next page.

        Returns:
            A page of the audit log.

        Raises:
            InvalidValue: `count` is out of range.
        """
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

    @AdminCommand
    def record(
        self, by: By, action: str, targets: Sequence[str], *, after: Json = None
    ) -> Op[None]:
        """Record an action that changed no rows, such as an export.

        Args:
            by: Who did this and why.
            action: The action, such as `"payload.read"`.
            targets: The targets of the action, such as `["job:5"]`.
            after: Details to store with the record.
        """
        return self._store.audit.record(by, action, targets, after=after)

    arecord: Final = AsyncTwin(record)


class SystemCommands(CommandGroup):
    """System information."""

    @AdminCommand
    def system(self) -> Op[System]:
        """Describe the server: its version, durability, days of history, and what blocks vacuum.

        Returns:
            The system information.
        """
        return self._store.inspection.system()

    asystem: Final = AsyncTwin(system)
