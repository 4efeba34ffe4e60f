"""What an operator can see and change of the whole installation: queues, workers, settings."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from tenure._model.audit import By
from tenure._model.ids import Json, WorkerId
from tenure._model.queue import QueueRow
from tenure._model.worker import WorkerRow
from tenure._rules import settings as known
from tenure._rules.redaction import Redactor
from tenure._store.port import Op
from tenure.admin.faces import Twin, Verb, Verbs


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting as it is in force; `changed` says that it was set at run time."""

    name: str
    value: Json
    built_in: Json
    changed: bool


class Installation(Verbs):
    """The verbs over queues, workers and settings."""

    @Verb
    def queues(self) -> Op[Sequence[QueueRow]]:
        """What operators have set for queues; one without a row has the defaults."""
        return self._store.queues()

    aqueues: Final = Twin(queues)

    @Verb
    def pause_queue(self, name: str, by: By, *, until: datetime | None = None) -> Op[QueueRow]:
        """Let nothing be claimed from a queue (`*`: from any), until then or until resumed."""
        return self._store.pause_queue(name, by, until=until)

    apause_queue: Final = Twin(pause_queue)

    @Verb
    def resume_queue(self, name: str, by: By) -> Op[QueueRow]:
        """Let a paused queue go on."""
        return self._store.resume_queue(name, by)

    aresume_queue: Final = Twin(resume_queue)

    @Verb
    def limit_queue(self, name: str, limit: int | None, by: By) -> Op[QueueRow]:
        """Let at most `limit` jobs of a queue (`*`: of all) run at once; None takes it away."""
        return self._store.limit_queue(name, limit, by)

    alimit_queue: Final = Twin(limit_queue)

    @Verb
    def configure_queue(
        self, name: str, by: By, *, lease: timedelta | None, max_attempts: int | None
    ) -> Op[QueueRow]:
        """Give a queue its own lease and attempts; None leaves them to the settings."""
        return self._store.configure_queue(name, by, lease=lease, max_attempts=max_attempts)

    aconfigure_queue: Final = Twin(configure_queue)

    @Verb
    def workers(self) -> Op[Sequence[WorkerRow]]:
        """All known workers; `beat_age` tells the living from the stale."""
        return self._store.workers()

    aworkers: Final = Twin(workers)

    @Verb
    def drain(self, worker: UUID, by: By) -> Op[bool]:
        """Ask a worker to take no new job and to end; False if it is unknown."""
        return self._store.drain(WorkerId(worker), by)

    adrain: Final = Twin(drain)

    @Verb
    def settings(self) -> Op[Sequence[Setting]]:
        """All settings as they are in force."""
        changed = yield from self._store.settings()
        return [
            Setting(name, changed.get(name, built_in), built_in, changed=name in changed)
            for name, built_in in known.BUILT_IN.items()
        ]

    asettings: Final = Twin(settings)

    @Verb
    def set_setting(self, name: str, value: Json, by: By) -> Op[None]:
        """Change a setting for the whole installation at run time."""
        return self._store.set_setting(name, value, by)

    aset_setting: Final = Twin(set_setting)

    @Verb
    def reset_setting(self, name: str, by: By) -> Op[None]:
        """Take a setting back to its built-in value."""
        known.check_name(name)
        return self._store.reset_setting(name, by)

    areset_setting: Final = Twin(reset_setting)

    @Verb
    def redactor(self) -> Op[Redactor]:
        """What hides the fields that the setting `redact` names now, and those built in. An edge
        passes through it whatever it shows of jobs, attempts, items and schedules."""
        return redactor_of((yield from self._store.settings()))

    aredactor: Final = Twin(redactor)


def redactor_of(changed: Mapping[str, Json]) -> Redactor:
    """What hides the fields that the settings name, and those built in."""
    return Redactor(changed.get("redact", known.BUILT_IN["redact"]))
