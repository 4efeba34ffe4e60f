"""Enqueue many calls in one operation, in batches, with a handle for each."""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Generic, TypeVar

from tenure._hooks.middleware import EnqueueScope
from tenure._model.job import EnqueueResult, NewJob, UniformBatch
from tenure._store.engine import Engine
from tenure._store.steps import Op, atomically
from tenure.errors import InvalidValue
from tenure.handle import Handle
from tenure.task import BoundCall

R = TypeVar("R")
_BATCH = 1000
# How many batches are in flight at a time. All of them are kept in memory, and more would hardly be
# any faster.
_PIPELINE = 16


def enqueue_all(
    engine: Engine, calls: Iterable[BoundCall[R]], passage: EnqueueScope
) -> Op[list[Handle[R]]]:
    """Enqueue the calls in batches, in one transaction. Return a handle for each."""

    def all_of_them() -> Op[list[Handle[R]]]:
        handles: list[Handle[R]] = []
        batches = _batched(calls)
        flow = _PipelinedBatch(batches)
        while passage.has_no_middleware and flow.has_more:
            flow = _PipelinedBatch(batches)
            sealed = map(engine.sealing.batch, flow)
            answers = iter((yield from engine.store.jobs.enqueue_pipelined(sealed)))
            for batch, jobs in flow.sent:
                stored = list(itertools.islice(answers, len(batch)))
                passage.after(jobs, stored)
                handles += _handles(engine, batch, stored)
        for batch in itertools.chain(flow.left, batches):
            admitted = passage.before(_jobs(batch))
            stored = [*(yield from engine.store.jobs.enqueue(engine.sealing.jobs(admitted)))]
            passage.after(admitted, stored)
            handles += _handles(engine, batch, stored)
        return handles

    return atomically(all_of_them())


class _PipelinedBatch(Generic[R]):
    """Batches that the store can pipeline: calls that share one template and have no key.

    Iteration stops before the first batch that can't be pipelined. That batch is then available
    as `left`.
    """

    def __init__(self, batches: Iterator[list[BoundCall[R]]]) -> None:
        self._batches = batches
        self.sent: list[tuple[list[BoundCall[R]], UniformBatch]] = []
        self.left: list[list[BoundCall[R]]] = []
        self.has_more = True

    def __iter__(self) -> Iterator[UniformBatch]:
        for batch in itertools.islice(self._batches, _PIPELINE):
            jobs = _jobs(batch)
            if not isinstance(jobs, UniformBatch) or jobs.job.key is not None:
                self.left.append(batch)
                break
            self.sent.append((batch, jobs))
            yield jobs
        self.has_more = len(self.sent) == _PIPELINE


def _handles(
    engine: Engine, batch: Sequence[BoundCall[R]], stored: Sequence[EnqueueResult]
) -> list[Handle[R]]:
    return [
        Handle(engine, answer.id, created=answer.created, returns=call.template.returns)
        for call, answer in zip(batch, stored, strict=True)
    ]


def _jobs(batch: Sequence[BoundCall[R]]) -> Sequence[NewJob]:
    template = batch[0].template
    if all(call.template is template for call in batch):
        return UniformBatch(template.job, [call.args for call in batch])
    return [call.job for call in batch]


def _batched(calls: Iterable[BoundCall[R]]) -> Iterator[list[BoundCall[R]]]:
    rest = iter(calls)
    while batch := list(itertools.islice(rest, _BATCH)):
        for call in batch:
            if not isinstance(call, BoundCall):
                raise InvalidValue(
                    f"calls must be made by task.bind, got {call!r}; write task.bind(…)"
                )
            if call.template.connection is not None:
                raise InvalidValue("give the connection to enqueue_many, not to its calls")
        yield batch
