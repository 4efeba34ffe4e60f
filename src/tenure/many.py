"""Enqueueing many calls at once: one operation, in batches, and a handle for each."""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

from tenure._hooks.passage import Passage
from tenure._model.job import Enqueued
from tenure._store.engine import Engine
from tenure._store.port import Op, atomically
from tenure.errors import InvalidValue
from tenure.handle import Handle
from tenure.task import Bound

R = TypeVar("R")
_BATCH = 1000


def enqueue_all(
    engine: Engine, calls: Iterable[Bound[R]], passage: Passage
) -> tuple[Op[list[Enqueued]], list[Bound[R]]]:
    """One operation that enqueues them in batches, and the calls as they were read."""
    bound: list[Bound[R]] = []

    def batches() -> Op[list[Enqueued]]:
        answers: list[Enqueued] = []
        for batch in _batched(calls):
            bound.extend(batch)
            jobs = passage.admit([call.job for call in batch])
            stored = yield from engine.store.enqueue(jobs)
            passage.stored(jobs, stored)
            answers += stored
        return answers

    return atomically(batches()), bound


def _batched(calls: Iterable[Bound[R]]) -> Iterator[list[Bound[R]]]:
    rest = iter(calls)
    while batch := list(itertools.islice(rest, _BATCH)):
        for call in batch:
            if not isinstance(call, Bound):
                raise InvalidValue(f"{call!r} is no call; write task.bind(…)")
            if call.connection is not None:
                raise InvalidValue("give the connection to enqueue_many, not to its calls")
        yield batch


def handles(
    engine: Engine, bound: Sequence[Bound[R]], answers: Sequence[Enqueued]
) -> list[Handle[R]]:
    """The handle of each call's job."""
    return [
        Handle(engine, answer.id, created=answer.created, returns=call.returns)
        for call, answer in zip(bound, answers, strict=True)
    ]
