"""Jobs: enqueue and read. What needs a lease is in `leases` and `settlement`,
lists are in `job_queries`."""

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

# One list of arguments, as text, that surely fits into jsonb, which takes up to 256 MiB of its own
# form: several times as much as some texts.
_LONGEST_LIST = 16 * 1024 * 1024


class JobQueries(QueryBase):
    """The part of the store that enqueues and reads jobs."""

    def enqueue(self, jobs: Sequence[NewJob], *, wake: bool = True) -> Op[Sequence[EnqueueResult]]:
        """Put jobs into their queues; answers in the order asked.

        Jobs that differ in their arguments alone are one short statement. Of others, those with
        and those without a key are one each, and both one transaction.
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
        # All is encoded before anything is sent: a refusal leaves nothing behind.
        parts = [
            (self._enqueue(name, [jobs[i] for i in indexes], wake=wake), indexes)
            for name, indexes in (("enqueue", plain), ("enqueue_keyed", keyed))
            if indexes
        ]
        op = self._enqueue_all(parts)
        by_index = yield from atomically(op) if len(parts) > 1 else op
        said: set[int] = set()
        result = []
        for place in answers:
            answer = by_index[sent[place]]
            result.append(answer if place not in said else EnqueueResult(answer.id, created=False))
            said.add(place)
        return result

    def enqueue_pipelined(self, batches: Iterable[UniformBatch]) -> Op[Sequence[EnqueueResult]]:
        """Put batches of jobs without a key into their queues, one behind the other; answers for
        all of them in the order asked. To be performed atomically."""
        errors: list[Exception] = []
        answers = yield Pipeline("enqueue_alike", _until_error(self._pipelined(batches), errors))
        if errors:
            raise errors[0]
        return [EnqueueResult(job_id, created=True) for rows in answers for job_id, _ in rows]

    def _pipelined(self, batches: Iterable[UniformBatch]) -> Iterator[Query]:
        """Each batch, halved as long as its arguments are too long for one list."""
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

    def _enqueue_all(self, parts: list[tuple[Query, list[int]]]) -> Op[dict[int, EnqueueResult]]:
        answers: dict[int, EnqueueResult] = {}
        for query, indexes in parts:
            rows = yield query
            for index, row in zip(indexes, rows, strict=True):
                answers[index] = EnqueueResult(JobId(row["id"]), row["created"])
        return answers

    def _enqueue(self, name: str, jobs: Sequence[NewJob], *, wake: bool) -> Query:
        keys: dict[str, object] = {}
        if name == "enqueue_keyed":
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
        """The job wherever it is now, in one snapshot, or None."""
        if not 0 < job_id <= LAST_ID:
            return None
        rows = yield self._query("get", ids=[job_id])
        return job_row(rows[0]) if rows else None

    def wait(self, job_id: JobId) -> Op[JobRow | None]:
        """Ask to be told on `ended_channel` when the job ends, and read it as it is now."""
        if not 0 < job_id <= LAST_ID:
            return None
        try:
            yield self._query("mark_awaited", id=job_id)
        except QueryFailed as error:
            if not error.is_conflict:
                raise
        return (yield from self.get(job_id))

    def attempts(self, job_id: JobId) -> Op[Sequence[AttemptRow]]:
        """The job's ended running periods, oldest first."""
        rows = yield self._query("attempts", job_id=job_id)
        return [AttemptRow(**{**row, "outcome": AttemptOutcome(row["outcome"])}) for row in rows]

    def last_attempts(self, ids: Sequence[JobId]) -> Op[Sequence[AttemptRow]]:
        """The last ended running period of each job that has one, without trace and log."""
        rows = yield self._query("last_attempts", ids=ids)
        return [AttemptRow(**{**row, "outcome": AttemptOutcome(row["outcome"])}) for row in rows]

    def items(self, job_id: JobId, *, after: str = "", count: int = 1000) -> Op[Mapping[str, Json]]:
        """The job's result items by key, above a key."""
        rows = yield self._query("items", job_id=job_id, after=after, count=count)
        return {row["key"]: row["data"] for row in rows}


def _until_error(queries: Iterator[Query], errors: list[Exception]) -> Iterator[Query]:
    """The queries up to an error of who makes them, which is kept: it is to be raised inside the
    operation, and not where the queries are sent."""
    try:
        yield from queries
    except Exception as error:  # noqa: BLE001 - the caller's own code is among it
        errors.append(error)


def _meta(job: NewJob) -> str | None:
    return payload.encode(job.meta, what="the meta fields") if job.meta else None


def _sparse(values: Sequence[object]) -> Sequence[object]:
    """Nothing, where there is nothing: unnest fills up a short array with NULLs."""
    return values if any(value is not None for value in values) else []
