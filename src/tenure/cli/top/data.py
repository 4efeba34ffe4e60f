"""The thread that queries the database, so keys work even if the database doesn't respond."""

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
from tenure.cli.top.state import OpenJob, PauseOrResume
from tenure.errors import TenureError

if TYPE_CHECKING:
    from tenure.admin import Admin
    from tenure.app import Tenure
    from tenure.cli.errors import CommandError
    from tenure.types import Overview


class DataThread:
    """Fetches the overview periodically and runs requests. It keeps going after errors."""

    def __init__(self, app: "Tenure", url: str, *, interval: float, actor_name: str | None) -> None:
        self._app = app
        self._url = url
        self._interval = interval
        self._actor_name = actor_name
        self._requests: queue.Queue[PauseOrResume | OpenJob | None] = queue.Queue()
        self._thread = threading.Thread(target=self._run, name="tenure top", daemon=True)
        self.overview: Overview | None = None
        self.answered_at: float = time.monotonic()
        self.trouble: CommandError | None = None
        self.message: str | None = None
        self.opened: list[str] | None = None
        self._wake: Callable[[], None] = lambda: None

    def start(self, wake: Callable[[], None]) -> None:
        """Start. `wake` is called after each query."""
        self._wake = wake
        self._thread.start()

    def request(self, request: PauseOrResume | OpenJob) -> None:
        """Queue this request to run next."""
        self._requests.put(request)

    def stop(self) -> None:
        """Stop, without waiting for a query in progress."""
        self._requests.put(None)
        self._thread.join(0.5)
        if not self._thread.is_alive():
            self._app.close()

    def _run(self) -> None:
        request: PauseOrResume | OpenJob | None
        while True:
            self._fetch()
            self._wake()
            try:
                request = self._requests.get(timeout=self._interval)
            except queue.Empty:
                continue
            if request is None:
                return
            self._run_request(request)

    def _fetch(self) -> None:
        try:
            self.overview = self._app.admin.overview()
        except TenureError as error:
            self.trouble = failure(error, url=self._url)
        else:
            self.trouble = None
            self.answered_at = time.monotonic()

    def _run_request(self, request: PauseOrResume | OpenJob) -> None:
        try:
            if isinstance(request, PauseOrResume):
                self.message = self._pause_or_resume(self._app.admin, request)
            else:
                self.opened = job_lines(self._app.admin, request.job_id)
        except TenureError as error:
            printed = failure(error, url=self._url)
            self.message = f"{printed.what}: {printed.why}"

    def _pause_or_resume(self, admin: "Admin", request: PauseOrResume) -> str:
        by = actor(self._actor_name, request.reason)
        if request.pause:
            admin.queues.pause(request.queue, by)
            return PAUSE_QUEUE.outcome(request.queue).sentence
        admin.queues.resume(request.queue, by)
        return RESUME_QUEUE.outcome(request.queue).sentence


def job_lines(admin: "Admin", job_id: int) -> list[str]:
    """Describe a job and its attempts in a few lines, without its arguments."""
    explanation = admin.jobs.why(job_id)
    job = admin.jobs.get(job_id)
    if job is None:
        return [explanation.sentence]
    lines = [
        f"job {job.id}  {job.task}  in queue {job.queue}",
        f"{job.state}, attempt {job.attempt} of {job.max_attempts}, priority {job.priority}",
        explanation.sentence,
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
