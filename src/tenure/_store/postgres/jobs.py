"""Enqueue and read jobs. Statements that need a lease are in `leases` and `settlement`."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from tenure._model.attempt import AttemptOutcome, AttemptRow
from tenure._model.ids import JobId, Json
from tenure._model.job import EnqueueResult, JobRow, NewJob, UniformBatch
from tenure._rules import payload
from tenure._rules.payload import first_of_each_key
from tenure._store.postgres.rows import LAST_ID, job_row
from tenure._store.postgres.statements import QueryBase
from tenure._store.steps import Op, Pipeline, Query, atomically
from tenure.errors import QueryFailed

# The longest list of arguments, as text, that is sure to fit into jsonb. The internal form of jsonb
# is limited to 256 MiB and can be several times the size of the text.
_LONGEST_LIST = 16 * 1024 * 1024


class JobQueries(QueryBase):
    def enqueue(self, jobs: Sequence[NewJob], *, wake: bool = True) -> Op[Sequence[EnqueueResult]]:
        """Enqueue jobs.

        Uniform jobs share one short statement. Results are in the same order as the jobs.
        """
        if not isinstance(jobs, UniformBatch) and len(jobs) == 1:
            jobs = UniformBatch(jobs[0], [jobs[0].args])
        if isinstance(jobs, UniformBatch) and jobs.job.key is None:
            payload.check(jobs.job)
            args = payload.encode_list(jobs.args)
            if len(args) <= _LONGEST_LIST:
                rows = yield self._enqueue_alike(jobs.job, args, wake=wake)
                return [EnqueueResult(job_id, created=True) for job_id, _ in rows]
        jobs = list(jobs)
        for job in jobs:
            payload.check(job)
        sent, answers = first_of_each_key(jobs)
        plain = [i for i in sent if jobs[i].key is None]
        keyed = [i for i in sent if jobs[i].key is not None]
        # Encode everything before sending anything, so a rejected job leaves nothing behind.
        parts = [
            (self._enqueue(name, [jobs[i] for i in indexes], wake=wake), indexes)
            for name, indexes in (("enqueue", plain), ("enqueue_keyed", keyed))
            if indexes
        ]
        op = self._enqueue_all(parts, jobs, wake=wake)
        by_index = yield from atomically(op) if len(parts) > 1 else op
        seen: set[int] = set()
        result = []
        for place in answers:
            answer = by_index[sent[place]]
            result.append(answer if place not in seen else EnqueueResult(answer.id, created=False))
            seen.add(place)
        return result

    def enqueue_pipelined(self, batches: Iterable[UniformBatch]) -> Op[Sequence[EnqueueResult]]:
        """Enqueue uniform batches in a pipeline.

        Run this in a transaction, because a batch may raise an error midway.
        """
        errors: list[Exception] = []
        answers = yield Pipeline("enqueue_alike", _until_error(self._pipelined(batches), errors))
        if errors:
            raise errors[0]
        return [EnqueueResult(job_id, created=True) for rows in answers for job_id, _ in rows]

    def _pipelined(self, batches: Iterable[UniformBatch]) -> Iterator[Query]:
        """Yield one query per batch.

        If the arguments don't fit in one list, split the batch in half.
        """
        for jobs in batches:
            payload.check(jobs.job)
            args = payload.encode_list(jobs.args)
            if len(args) <= _LONGEST_LIST:
                yield self._enqueue_alike(jobs.job, args, wake=True)
            else:
                middle = len(jobs) // 2
                yield from self._pipelined((jobs[:middle], jobs[middle:]))

    def _enqueue_alike(self, job: NewJob, args: str, *, wake: bool) -> Query:
        query = self._query(
            "enqueue_alike",
            args=args,
            queue=job.queue,
            task=job.task,
            priority=job.priority,
            run_at=job.run_at,
            delay=job.delay,
            max_attempts=job.max_attempts,
            max_losses=job.max_losses,
            lease=job.lease,
            target=job.target,
            meta=_meta(job),
            held=job.held,
            channel=self.channel,
            wake=[job.queue] if wake else [],
        )
        return Query(query.name, query.params, as_tuples=True)

    def _enqueue_all(
        self, parts: list[tuple[Query, list[int]]], jobs: Sequence[NewJob], *, wake: bool
    ) -> Op[dict[int, EnqueueResult]]:
        answers: dict[int, EnqueueResult] = {}
        for query, indexes in parts:
            if (
                query.name == "enqueue_keyed"
                and not (yield self._query("may_choose_ids"))[0]["may"]
            ):
                keyed = [jobs[index] for index in indexes]
                results = yield from atomically(self._enqueue_by_taken_keys(keyed, wake=wake))
            else:
                rows = yield query
                results = [EnqueueResult(JobId(row["id"]), row["created"]) for row in rows]
            answers |= zip(indexes, results, strict=True)
        return answers

    def _enqueue_by_taken_keys(
        self, jobs: Sequence[NewJob], *, wake: bool
    ) -> Op[Sequence[EnqueueResult]]:
        """Enqueue as a role that can't choose ids: take the keys first, then insert the jobs."""
        rows = yield self._query(
            "take_keys", tasks=[job.task for job in jobs], keys=[job.key for job in jobs]
        )
        holders = {(row["task"], row["key"]): row["job_id"] for row in rows}
        created = iter(())
        if taken := [job for job in jobs if not holders[job.task, job.key]]:
            created = iter((yield self._enqueue("enqueue_taken", taken, wake=wake)))
        return [
            EnqueueResult(JobId(holder), created=False)
            if (holder := holders[job.task, job.key])
            else EnqueueResult(JobId(next(created)["id"]), created=True)
            for job in jobs
        ]

    def _enqueue(self, name: str, jobs: Sequence[NewJob], *, wake: bool) -> Query:
        keys: dict[str, object] = {}
        if name != "enqueue":
            keys = {"keys": [j.key for j in jobs], "key_fors": [j.key_for for j in jobs]}
        return self._query(
            name,
            queues=[j.queue for j in jobs],
            tasks=[j.task for j in jobs],
            args=[payload.encode(j.args) for j in jobs],
            priorities=[j.priority for j in jobs],
            run_ats=_sparse([j.run_at for j in jobs]),
            delays=_sparse([j.delay for j in jobs]),
            max_attempts=_sparse([j.max_attempts for j in jobs]),
            max_losses=_sparse([j.max_losses for j in jobs]),
            leases=_sparse([j.lease for j in jobs]),
            targets=_sparse([j.target for j in jobs]),
            metas=_sparse([_meta(j) for j in jobs]),
            held=[j.held for j in jobs],
            channel=self.channel,
            wake=sorted({j.queue for j in jobs}) if wake else [],
            **keys,
        )

    def get(self, job_id: JobId) -> Op[JobRow | None]:
        """Return the job from whichever table it is in, in one snapshot, or None."""
        if not 0 < job_id <= LAST_ID:
            return None
        rows = yield self._query("get", ids=[job_id], largest=None)
        return job_row(rows[0]) if rows else None

    def queues_of(self, ids: Sequence[JobId]) -> Op[Mapping[JobId, str]]:
        """Return the queues of the jobs that exist, in any state."""
        rows = yield self._query("get", ids=list(ids), largest=0)
        return {JobId(row["id"]): row["queue"] for row in rows}

    def get_many(self, ids: Sequence[JobId], *, largest: int | None = None) -> Op[Sequence[JobRow]]:
        """Return the jobs that exist, without payload fields larger than `largest` bytes."""
        rows = yield self._query("get", ids=list(ids), largest=largest)
        return [job_row(row) for row in rows]

    def wait(self, job_id: JobId) -> Op[JobRow | None]:
        """Request a notification on `ended_channel` when the job ends, and read the job now."""
        if not 0 < job_id <= LAST_ID:
            return None
        try:
            yield self._query("mark_awaited", id=job_id)
        except QueryFailed as error:
            if not error.is_conflict:
                raise
        return (yield from self.get(job_id))

    def attempts(self, job_id: JobId) -> Op[Sequence[AttemptRow]]:
        rows = yield self._query("attempts", job_id=job_id)
        return [AttemptRow(**{**row, "outcome": AttemptOutcome(row["outcome"])}) for row in rows]

    def last_attempts(self, ids: Sequence[JobId]) -> Op[Sequence[AttemptRow]]:
        """Return each job's last ended attempt, without traceback and log."""
        rows = yield self._query("last_attempts", ids=ids)
        return [AttemptRow(**{**row, "outcome": AttemptOutcome(row["outcome"])}) for row in rows]

    def items(self, job_id: JobId, *, after: str = "", count: int = 1000) -> Op[Mapping[str, Json]]:
        """Return the job's result items after a key, by key."""
        rows = yield self._query("items", job_id=job_id, after=after, count=count)
        return {row["key"]: row["data"] for row in rows}


def _until_error(queries: Iterator[Query], errors: list[Exception]) -> Iterator[Query]:
    """Yield queries until their source raises.

    Keep the error so that the operation can raise it.
    """
    try:
        yield from queries
    except Exception as error:  # noqa: BLE001 - includes the caller's code
        errors.append(error)


def _meta(job: NewJob) -> str | None:
    return payload.encode(job.meta, what="the meta fields") if job.meta else None


def _sparse(values: Sequence[object]) -> Sequence[object]:
    """Return an empty array if all values are `None`.

    This works because unnest pads short arrays with NULLs.
    """
    return values if any(value is not None for value in values) else []
