"""Enqueueing many calls at once: one operation, in batches, and a handle for each."""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

from tenure._hooks.passage import Passage
from tenure._model.job import Alike, NewJob
from tenure._store.engine import Engine
from tenure._store.port import Op, atomically
from tenure.errors import InvalidValue
from tenure.handle import Handle
from tenure.task import Bound

R = TypeVar("R")
_BATCH = 1000


def enqueue_all(engine: Engine, calls: Iterable[Bound[R]], passage: Passage) -> Op[list[Handle[R]]]:
    """One operation that enqueues them in batches, and answers with the handle of each."""

    def batches() -> Op[list[Handle[R]]]:
        handles: list[Handle[R]] = []
        for batch in _batched(calls):
            jobs = passage.admit(_jobs(batch))
            stored = yield from engine.store.enqueue(jobs)
            passage.stored(jobs, stored)
            handles += [
                Handle(engine, answer.id, created=answer.created, returns=call.asked.returns)
                for call, answer in zip(batch, stored, strict=True)
            ]
        return handles

    return atomically(batches())


def _jobs(batch: Sequence[Bound[R]]) -> Sequence[NewJob]:
    asked = batch[0].asked
    if all(call.asked is asked for call in batch):
        return Alike(asked.job, [call.args for call in batch])
    return [call.job for call in batch]


def _batched(calls: Iterable[Bound[R]]) -> Iterator[list[Bound[R]]]:
    rest = iter(calls)
    while batch := list(itertools.islice(rest, _BATCH)):
        for call in batch:
            if not isinstance(call, Bound):
                raise InvalidValue(f"{call!r} is no call; write task.bind(…)")
            if call.asked.connection is not None:
                raise InvalidValue("give the connection to enqueue_many, not to its calls")
        yield batch
