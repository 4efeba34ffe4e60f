"""Edit stored jobs, and run ended ones again. Each command and its audit rows share a transaction.

Arguments are sealed here, because a codec binds them to the job's task, which is known only once
the job is locked.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tenure._model.audit import By
from tenure._model.edit import EditableJob, JobChanges
from tenure._model.ids import JobId, Json
from tenure._model.job import NewJob, State
from tenure._model.results import (
    EditStatus,
    RerunResult,
    RerunStatus,
    RetryResult,
    RetryStatus,
)
from tenure._rules import edits as rules
from tenure._rules import payload
from tenure._rules.readable import UnreadableJson, shown, shown_meta
from tenure._rules.redaction import Redactor
from tenure._rules.runtime_settings import BUILT_IN
from tenure._rules.sealing import Sealing, is_sealed
from tenure._store.postgres.job_commands import JobCommandQueries
from tenure._store.postgres.jobs import JobQueries
from tenure._store.postgres.settings import SettingQueries
from tenure._store.postgres.statements import QueryBase
from tenure._store.steps import Op, Row, atomically
from tenure.errors import PayloadError

_EDITABLE = (State.QUEUED, State.FAILED)
# How often an edit tries to lock jobs that change their state meanwhile.
_TRIES = 3


@dataclass(eq=False)
class JobEditQueries(QueryBase):
    jobs: JobQueries
    commands: JobCommandQueries
    settings: SettingQueries

    def edit(
        self, ids: Sequence[JobId], changes: JobChanges, by: By, *, sealing: Sealing
    ) -> Op[Sequence[EditStatus]]:
        """Change queued jobs and dead letters.

        A claim that holds the row comes first: the edit waits for it, and refuses the running job.
        """
        rules.check(changes)
        if changes.args is not None:
            rules.check_args(changes.args)
        return (yield from atomically(self._edit(ids, changes, by, sealing)))

    def _edit(
        self, ids: Sequence[JobId], changes: JobChanges, by: By, sealing: Sealing
    ) -> Op[Sequence[EditStatus]]:
        locked, states = yield from self._locked_or_state(ids)
        answers: dict[JobId, EditStatus] = {}
        for job_id, state in states.items():
            answers[job_id] = EditStatus.RUNNING if state.is_live else EditStatus.ENDED
        for job in locked.values():
            if changes.run_at is not None and not job.is_queued:
                answers[job.id] = EditStatus.NOT_QUEUED
            elif _is_closed(job.args, changes.args, sealing):
                answers[job.id] = EditStatus.SEALED
            else:
                answers[job.id] = EditStatus.EDITED
        edited = [job for job in locked.values() if answers[job.id] is EditStatus.EDITED]
        yield from self._apply(edited, changes, by, "edit", sealing)
        return [answers.get(job_id, EditStatus.NOT_FOUND) for job_id in ids]

    def _locked_or_state(
        self, ids: Sequence[JobId]
    ) -> Op[tuple[Mapping[JobId, EditableJob], Mapping[JobId, State]]]:
        """Lock the jobs that can be edited, and return the states of the others that exist."""
        locked: dict[JobId, EditableJob] = {}
        states: dict[JobId, State] = {}
        wanted = list(ids)
        for _ in range(_TRIES):
            locked |= yield from self._locked(wanted)
            left = [job_id for job_id in ids if job_id not in locked]
            rows = (yield self._query("job_states", ids=left)) if left else []
            states = {JobId(row["id"]): State(row["state"]) for row in rows}
            # Its attempt may have ended while this waited for the row: then it can be edited now.
            wanted = [job_id for job_id, state in states.items() if state in _EDITABLE]
            if not wanted:
                break
        return locked, states

    def retry(
        self, ids: Sequence[JobId], args: Mapping[str, Json], by: By, *, sealing: Sealing
    ) -> Op[Sequence[RetryResult]]:
        """Requeue dead letters with other arguments. A dead letter that stays keeps its own."""
        rules.check_args(args)
        return (yield from atomically(self._retry(ids, args, by, sealing)))

    def _retry(
        self, ids: Sequence[JobId], args: Mapping[str, Json], by: By, sealing: Sealing
    ) -> Op[Sequence[RetryResult]]:
        locked = yield from self._locked(ids)
        closed = {job.id for job in locked.values() if _is_closed(job.args, args, sealing)}
        open_ids = [job_id for job_id in ids if job_id not in closed or locked[job_id].is_queued]
        results = yield from self.commands.retry_unaudited(open_ids)
        answers = dict(zip(open_ids, results, strict=True))
        retried = [
            locked[job_id]
            for job_id, result in answers.items()
            if result.answer is RetryStatus.RETRIED
        ]
        yield from self._apply(retried, JobChanges(args=args), by, "retry", sealing)
        sealed = RetryResult(RetryStatus.SEALED)
        return [answers.get(job_id, sealed) for job_id in ids]

    def _locked(self, ids: Sequence[JobId]) -> Op[Mapping[JobId, EditableJob]]:
        rows = yield self._query("lock_editable", ids=list(ids))
        return {
            JobId(row["id"]): EditableJob(
                JobId(row["id"]),
                row["is_queued"],
                row["task"],
                shown(row["args"], "args"),
                row["priority"],
                row["run_at"],
                row["max_attempts"],
                shown_meta(row["meta"]),
            )
            for row in rows
        }

    def _apply(
        self,
        jobs: Sequence[EditableJob],
        changes: JobChanges,
        by: By,
        action: str,
        sealing: Sealing,
    ) -> Op[None]:
        """Write the changes to locked jobs, and one audit row for each job."""
        if not jobs:
            return
        args = [_sealed(changes.args, job.task, sealing) for job in jobs]
        meta = rules.meta_changes(changes)
        yield self._query(
            "edit",
            ids=[job.id for job in jobs],
            args=[None if one is None else payload.encode(one) for one in args],
            priority=changes.priority,
            run_at=changes.run_at,
            max_attempts=changes.max_attempts,
            meta=None if meta is None else payload.encode(meta, what="the tags"),
        )
        redactor = yield from self._redactor()
        rows = [
            (f"job:{job.id}", *rules.audited(job, changes, new, redactor))
            for job, new in zip(jobs, args, strict=True)
        ]
        yield from self._audit_changes(by, action, rows)

    def _redactor(self) -> Op[Redactor]:
        changed = yield from self.settings.changed()
        return Redactor(changed.get("redact", BUILT_IN["redact"]))

    def rerun(
        self,
        ids: Sequence[JobId],
        by: By,
        *,
        args: Mapping[str, Json] | None,
        keep_key: bool,
        sealing: Sealing,
    ) -> Op[Sequence[RerunResult]]:
        """Enqueue ended jobs again as new jobs. The ended ones stay as they are."""
        if args is not None:
            rules.check_args(args)
        op = self._rerun(ids, by, args=args, keep_key=keep_key, sealing=sealing)
        return (yield from atomically(op))

    def _rerun(
        self,
        ids: Sequence[JobId],
        by: By,
        *,
        args: Mapping[str, Json] | None,
        keep_key: bool,
        sealing: Sealing,
    ) -> Op[Sequence[RerunResult]]:
        rows = {row["id"]: row for row in (yield self._query("ended_jobs", ids=list(ids)))}
        answers: list[RerunResult] = []
        for job_id in ids:
            row = rows.get(job_id)
            if row is None:
                is_live = bool((yield self._query("job_states", ids=[job_id])))
                status = RerunStatus.LIVE if is_live else RerunStatus.NOT_FOUND
                answers.append(RerunResult(status))
            elif _is_closed(row["args"], args, sealing):
                answers.append(RerunResult(RerunStatus.SEALED))
            else:
                job = _new_job(row, _sealed(args, row["task"], sealing), keep_key=keep_key)
                answers.append((yield from self._enqueued(job_id, job, by)))
        return answers

    def _enqueued(self, old: JobId, job: NewJob, by: By) -> Op[RerunResult]:
        [result] = yield from self.jobs.enqueue([job])
        if not result.created:
            return RerunResult(RerunStatus.KEY_HELD, holder=result.id)
        yield from self._audit(by, "rerun", [f"job:{old}"], after={"job": result.id})
        yield from self._audit(by, "enqueue", [f"job:{result.id}"], after={rules.RERUN_OF: old})
        return RerunResult(RerunStatus.ENQUEUED, job=result.id)


def _is_closed(stored: Json, args: Mapping[str, Json] | None, sealing: Sealing) -> bool:
    """Return whether new arguments would be stored in clear in place of sealed ones."""
    return args is not None and is_sealed(stored) and not sealing.has_codec


def _sealed(args: Mapping[str, Json] | None, task: str, sealing: Sealing) -> Json:
    return None if args is None else sealing.arguments(dict(args), task=task)


def _new_job(row: Row, args: Json, *, keep_key: bool) -> NewJob:
    """Return the job that runs an ended one again."""
    if args is None:
        args = shown(row["args"], "args")
    meta = shown_meta(row["meta"])
    for value in (args, meta):
        if isinstance(value, UnreadableJson):
            raise PayloadError(f"job {row['id']} cannot be run again: {value.why}")
    return NewJob(
        row["task"],
        queue=row["queue"],
        args=args,
        priority=row["priority"],
        key=row["key"] if keep_key else None,
        key_for=row["key_for"] if keep_key else None,
        max_attempts=row["max_attempts"],
        max_losses=row["max_losses"],
        lease=row["lease"],
        target=row["target"],
        meta={**(meta or {}), rules.RERUN_OF: row["id"]},
    )
