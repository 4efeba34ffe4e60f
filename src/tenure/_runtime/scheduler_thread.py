"""The scheduler of one process that runs work, on a thread of its own: a handler that blocks the
event loop makes no tick late, and a long catching up makes no renewal late."""

from collections.abc import Sequence
from functools import partial

from tenure._model.schedule import SCHEDULES_CHANGED
from tenure._runtime.host import WorkerHost
from tenure._services.base import Service
from tenure._services.scheduler import Scheduler
from tenure._services.thread import ServiceThread

# A wakeup about schedules, and one that may be about anything.
SCHEDULER_WAKEUPS = ("", SCHEDULES_CHANGED)


def scheduler(app: WorkerHost, name: str) -> Scheduler:
    """The app's scheduler, for the event loop of whoever asks."""
    return Scheduler(
        app.engine.store,
        app.engine.service_connection(f"tenure {name} scheduler"),
        program=app.program,
        version=app.version,
        schedules=list(app.declared.values()),
        defaults=app.defaults,
    )


class SchedulerThread:
    """A thread that fires schedules, from start to stop."""

    def __init__(self, app: WorkerHost, name: str) -> None:
        self._app = app
        self._name = name
        self._scheduler: Scheduler | None = None
        self._thread = ServiceThread(self._build_services, name="scheduler")

    def _build_services(self) -> Sequence[Service]:
        """Made on the thread, because a link belongs to its loop."""
        self._scheduler = scheduler(self._app, self._name)
        return [self._scheduler]

    def start(self) -> None:
        self._thread.start()

    @property
    def fired(self) -> tuple[int, int, int]:
        """Ticks that were recorded, jobs that they made, and what the database did not do."""
        service = self._scheduler
        return (0, 0, 0) if service is None else (service.ticks, service.jobs, service.errors)

    def wake(self, queue: str) -> None:
        """Pass on a wakeup."""
        if self._scheduler is not None:
            self._thread.call(partial(self._scheduler.wake, queue))

    def stop_taking_work(self) -> None:
        """Fire nothing more, from the next pass on."""
        if self._scheduler is not None:
            self._thread.call(self._scheduler.stop)

    async def stop(self) -> None:
        await self._thread.stop()
