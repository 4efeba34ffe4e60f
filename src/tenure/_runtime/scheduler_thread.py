"""Run the scheduler on its own thread.

This way, a handler that blocks the event loop can't delay ticks, and a scheduler that is
catching up can't delay renewals.
"""

from collections.abc import Sequence
from functools import partial

from tenure._model.schedule import SCHEDULES_CHANGED
from tenure._runtime.host import WorkerHost
from tenure._services.base import Service
from tenure._services.notices import NoticeService
from tenure._services.scheduler import Scheduler
from tenure._services.thread import ServiceThread

# A wakeup about schedules, and one that could be about anything.
SCHEDULER_WAKEUPS = ("", SCHEDULES_CHANGED)


def scheduler(app: WorkerHost, name: str) -> Scheduler:
    return Scheduler(
        app.engine.store,
        app.engine.service_connection(f"tenure {name} scheduler"),
        program=app.program,
        version=app.version,
        schedules=list(app.declared.values()),
        defaults=app.defaults,
    )


def notice_service(app: WorkerHost, name: str) -> NoticeService:
    return NoticeService(
        app.engine.store,
        app.engine.service_connection(f"tenure {name} notices"),
        program=app.program,
        version=app.version,
        rules=app.notices.rules(app.program),
    )


class SchedulerThread:
    def __init__(self, app: WorkerHost, name: str) -> None:
        self._app = app
        self._name = name
        self._scheduler: Scheduler | None = None
        self._notices: NoticeService | None = None
        self._thread = ServiceThread(self._build_services, name="scheduler")

    def _build_services(self) -> Sequence[Service]:
        self._scheduler = scheduler(self._app, self._name)
        self._notices = notice_service(self._app, self._name)
        return [self._scheduler, self._notices]

    def start(self) -> None:
        self._thread.start()

    @property
    def fired(self) -> tuple[int, int, int]:
        """Ticks recorded, jobs created, and database errors."""
        service = self._scheduler
        return (0, 0, 0) if service is None else (service.ticks, service.jobs, service.errors)

    def wake(self, queue: str) -> None:
        if self._scheduler is not None:
            self._thread.call(partial(self._scheduler.wake, queue))

    def stop_taking_work(self) -> None:
        if self._scheduler is not None:
            self._thread.call(self._scheduler.stop)
        if self._notices is not None:
            self._thread.call(self._notices.stop)

    async def stop(self) -> None:
        await self._thread.stop()
