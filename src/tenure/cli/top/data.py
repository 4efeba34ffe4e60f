"""The thread that asks the database, so that keys are heard while it does not answer."""

import contextlib
import queue
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from tenure._actions import PAUSE_QUEUE, RESUME_QUEUE
from tenure.cli.errors import failure
from tenure.cli.options import actor
from tenure.cli.output import shown
from tenure.cli.top.state import Open, Steer
from tenure.errors import TenureError

if TYPE_CHECKING:
    from tenure.admin import Admin
    from tenure.app import Tenure
    from tenure.cli.errors import CommandError
    from tenure.types import Overview


class DataThread:
    """Asks for an overview again and again, and does what is wished; whatever happens, goes on."""

    def __init__(self, app: "Tenure", url: str, *, interval: float, who: str | None) -> None:
        self._app = app
        self._url = url
        self._interval = interval
        self._who = who
        self._wishes: queue.Queue[Steer | Open | None] = queue.Queue()
        self._thread = threading.Thread(target=self._run, name="tenure top", daemon=True)
        self.overview: Overview | None = None
        self.answered_at: float = time.monotonic()
        self.trouble: CommandError | None = None
        self.said: str | None = None
        self.opened: list[str] | None = None
        self._told: Callable[[], None] = lambda: None

    def start(self, told: Callable[[], None]) -> None:
        """Begin; `told` is called whenever there is something new."""
        self._told = told
        self._thread.start()

    def wish(self, wish: Steer | Open) -> None:
        """Do this next."""
        self._wishes.put(wish)

    def stop(self) -> None:
        """End; a question that is not answered is not waited for."""
        self._wishes.put(None)
        self._thread.join(0.5)
        if not self._thread.is_alive():
            self._app.close()

    def _run(self) -> None:
        wish: Steer | Open | None
        while True:
            self._look()
            self._told()
            try:
                wish = self._wishes.get(timeout=self._interval)
            except queue.Empty:
                continue
            if wish is None:
                return
            self._grant(wish)

    def _look(self) -> None:
        try:
            self.overview = self._app.admin.overview()
        except TenureError as error:
            self.trouble = failure(error, url=self._url)
        else:
            self.trouble = None
            self.answered_at = time.monotonic()

    def _grant(self, wish: Steer | Open) -> None:
        try:
            if isinstance(wish, Steer):
                self.said = self._steer(self._app.admin, wish)
            else:
                self.opened = job_lines(self._app.admin, wish.job_id)
        except TenureError as error:
            told = failure(error, url=self._url)
            self.said = f"{told.what}: {told.why}"

    def _steer(self, admin: "Admin", wish: Steer) -> str:
        who = actor(self._who, wish.reason)
        if wish.pause:
            admin.queues.pause(wish.queue, who)
            return PAUSE_QUEUE.outcome(wish.queue).sentence
        admin.queues.resume(wish.queue, who)
        return RESUME_QUEUE.outcome(wish.queue).sentence


def job_lines(admin: "Admin", job_id: int) -> list[str]:
    """A job in a few lines: where it stands, and its attempts. Never what it carries."""
    standing = admin.jobs.why(job_id)
    job = admin.jobs.get(job_id)
    if job is None:
        return [standing.sentence]
    lines = [
        f"job {job.id}  {job.task}  in queue {job.queue}",
        f"{job.state}, attempt {job.attempt} of {job.max_attempts}, priority {job.priority}",
        standing.sentence,
        f"created {shown(job.created_at)}   due {shown(job.run_at)}   ended {shown(job.ended_at)}",
        "",
    ]
    with contextlib.suppress(TenureError):
        for attempt in admin.jobs.attempts(job_id)[-10:]:
            error = f": {attempt.error_type}" if attempt.error_type else ""
            lines.append(
                f"attempt {attempt.attempt}  {attempt.outcome}{error}  "
                f"{shown(attempt.started_at)} to {shown(attempt.ended_at)}"
            )
    return lines
