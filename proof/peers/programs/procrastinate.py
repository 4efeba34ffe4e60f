"""Procrastinate; in its documented way with a task that retries stalled jobs."""

from __future__ import annotations

from typing import Any

import psycopg
from procrastinate import App, PsycopgConnector

from proof.peers.programs import common


class Program:
    distribution = "procrastinate"

    async def install(self) -> None:
        async with _app.open_async():
            await _app.schema_manager.apply_schema_async()

    async def enqueue(self, jobs: int) -> None:
        async with _app.open_async():
            await _handle.batch_defer_async(*[{"number": number} for number in range(jobs)])

    def work(self) -> None:
        _app.run_worker(concurrency=common.AT_ONCE, name=common.WORKER)

    async def store(self) -> dict[int, tuple[str, Any]]:
        with psycopg.connect(common.URL) as connection:
            rows = connection.execute(
                "SELECT (args->>'number')::int, status::text FROM procrastinate_jobs"
                " WHERE task_name = 'handle'"
            ).fetchall()
        return {number: (status, None) for number, status in rows}


async def retry_stalled_jobs(_context: Any, timestamp: int) -> None:  # noqa: ARG001 - given by name
    """As its documentation shows it; there every ten minutes."""
    for job in await _app.job_manager.get_stalled_jobs():
        await _app.job_manager.retry_job(job)


_app = App(connector=PsycopgConnector(conninfo=common.URL))
_handle = _app.task(name="handle")(common.ahandle)
if common.WAY == "documented":
    _task = _app.task(queueing_lock="retry_stalled_jobs", pass_context=True)(retry_stalled_jobs)
    _app.periodic(cron="* * * * *")(_task)


if __name__ == "__main__":
    common.main(Program())
