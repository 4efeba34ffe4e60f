"""Commands that change stored jobs: edit, retry, and run again."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final

from tenure import kinds
from tenure._model.audit import By
from tenure._model.edit import JobChanges
from tenure._model.ids import JobId, Json
from tenure._model.results import EditStatus, RerunResult, RetryResult
from tenure._rules import edits, payload
from tenure._rules import idempotency as rules
from tenure._store.steps import Op
from tenure.admin._commands import (
    AdminCommand,
    AsyncTwin,
    CommandGroup,
    apply,
    check_kinds,
)
from tenure.admin.search import Ids
from tenure.config import duration
from tenure.errors import InvalidValue
from tenure.task import Seconds, new_job, unregistered_task


class EditCommands(CommandGroup):
    """Commands that change stored jobs. With a codec, they seal new arguments."""

    @AdminCommand
    def edit(
        self,
        ids: Ids,
        by: By,
        *,
        args: Mapping[str, Json] | None = None,
        priority: int | None = None,
        run_at: datetime | None = None,
        max_attempts: int | None = None,
        timeout: Seconds | None = None,
        tags: Sequence[str] | None = None,
        dry_run: bool = False,
    ) -> Op[Sequence[EditStatus]]:
        """Change queued jobs and dead letters.

        The key, the cursor, the progress and the items stay as they are. The audit log records the
        values before and after, with secrets redacted.

        Args:
            ids: Job ids, as numbers or strings.
            by: Who is doing this and why, for the audit log.
            args: All new arguments by name (default: unchanged). They are not checked against the
                task's parameters.
            priority: The new priority, 0 to 9 (default: unchanged).
            run_at: The new start time of a queued job, not in the past (default: unchanged).
            max_attempts: How many times to try the job in all (default: unchanged).
            timeout: How long an attempt may run (default: unchanged).
            tags: All new tags. An empty list removes them (default: unchanged).
            dry_run: Report the outcome without changing anything (default: False).

        Returns:
            One status for each id. A running job stays unchanged.

        Raises:
            InvalidValue: Nothing changes, a value is out of range, or `args` are for jobs of
                several tasks.
            PayloadError: The arguments are not JSON, are too large, or contain `<redacted>`.
        """
        # The checks of an enqueue apply. Their meta fields are the timeout in seconds and the tags.
        job = new_job(
            unregistered_task("edit"),
            {"priority": priority, "max_attempts": max_attempts, "timeout": timeout, "tags": tags},
            {},
        )
        payload.check(job)
        if run_at is not None:
            payload.check_instant(run_at)
        changes = JobChanges(
            args=args,
            priority=priority,
            run_at=run_at,
            max_attempts=max_attempts,
            timeout=None if timeout is None else duration(timeout),
            tags=None if tags is None else job.meta.get("tags", []),
        )
        numbers = rules.job_ids(ids)
        if args is not None:
            changes = replace(changes, args=(yield from self._arguments(numbers, args)))
        op = self._store.job_edits.edit(numbers, changes, by, sealing=self._engine.sealing)
        return (yield from apply(op, dry_run=dry_run))

    aedit: Final = AsyncTwin(edit)

    @AdminCommand
    def retry(
        self,
        ids: Ids,
        by: By,
        *,
        args: Mapping[str, Json] | None = None,
        dry_run: bool = False,
    ) -> Op[Sequence[RetryResult]]:
        """Requeue dead letters with fresh attempts.

        Args:
            ids: Job ids, as numbers or strings.
            by: Who is doing this and why, for the audit log.
            args: All new arguments by name (default: unchanged). The cursor, the progress and the
                items stay as they are.
            dry_run: Report the outcome without changing anything (default: False).

        Returns:
            One result for each id.

        Raises:
            PayloadError: The arguments are not JSON, are too large, or contain `<redacted>`.
        """
        numbers = rules.job_ids(ids)
        if args is None:
            return apply(self._store.job_commands.retry(numbers, by), dry_run=dry_run)
        return apply(self._retry_with(numbers, args, by), dry_run=dry_run)

    aretry: Final = AsyncTwin(retry)

    def _retry_with(
        self, numbers: Sequence[JobId], args: Mapping[str, Json], by: By
    ) -> Op[Sequence[RetryResult]]:
        new = yield from self._arguments(numbers, args)
        sealing = self._engine.sealing
        return (yield from self._store.job_edits.retry(numbers, new, by, sealing=sealing))

    @AdminCommand
    def rerun(
        self,
        ids: Ids,
        by: By,
        *,
        args: Mapping[str, Json] | None = None,
        keep_key: bool = False,
        dry_run: bool = False,
    ) -> Op[Sequence[RerunResult]]:
        """Run ended jobs again, as new jobs. The ended jobs stay as they are.

        A new job takes over the queue, task, arguments, priority, attempts, timeout and tags. It
        starts without the cursor, the progress and the items. Its `meta` has the old job's id as
        `rerun_of`. Calling this twice creates two jobs.

        Args:
            ids: Ids of completed, cancelled or failed jobs, as numbers or strings.
            by: Who is doing this and why, for the audit log.
            args: All arguments of the new jobs by name (default: those of the ended job).
            keep_key: Give the new job the ended job's deduplication key. If another job holds the
                key, create none (default: False).
            dry_run: Report the outcome without changing anything (default: False).

        Returns:
            One result for each id, with the new job's id. A dry run returns no new ids.

        Raises:
            PayloadError: The arguments are not JSON, are too large, or contain `<redacted>`.
        """
        numbers = rules.job_ids(ids)
        if args is None:
            yield from check_kinds(self._store, (yield from self._tasks(numbers)))
        else:
            args = yield from self._arguments(numbers, args)
        op = self._store.job_edits.rerun(
            numbers, by, args=args, keep_key=keep_key, sealing=self._engine.sealing
        )
        results = yield from apply(op, dry_run=dry_run)
        # The ids that a dry run draws belong to no job.
        return [replace(one, job=None) for one in results] if dry_run else results

    arerun: Final = AsyncTwin(rerun)

    def _arguments(self, ids: Sequence[JobId], args: Mapping[str, Json]) -> Op[Mapping[str, Json]]:
        """Return new arguments for stored jobs. A kind of work checks its own, as in an enqueue."""
        edits.check_args(args)
        tasks = yield from self._tasks(ids)
        if len(tasks) > 1:
            raise InvalidValue(
                f"args must be for jobs of one task, got jobs of {', '.join(sorted(tasks))}; "
                "name only the jobs of one task"
            )
        yield from check_kinds(self._store, tasks)
        return kinds.arguments(tasks.pop(), args) if tasks else args

    def _tasks(self, ids: Sequence[JobId]) -> Op[set[str]]:
        """Return the tasks of the jobs that exist. A job never changes its task."""
        rows = yield from self._store.jobs.get_many(ids, largest=0)
        return {row.task for row in rows}
