"""Enqueueing many calls at once: one operation, in batches, and a handle for each."""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Generic, TypeVar

from tenure._hooks.passage import Passage
from tenure._model.job import Alike, Enqueued, NewJob
from tenure._store.engine import Engine
from tenure._store.port import Op, atomically
from tenure.errors import InvalidValue
from tenure.handle import Handle
from tenure.task import Bound

R = TypeVar("R")
_BATCH = 1000
# So many batches are on their way at once. More would hardly be faster, and all are kept meanwhile.
_FLOW = 16


def enqueue_all(engine: Engine, calls: Iterable[Bound[R]], passage: Passage) -> Op[list[Handle[R]]]:
    """One operation that enqueues them in batches, and answers with the handle of each."""

    def all_of_them() -> Op[list[Handle[R]]]:
        handles: list[Handle[R]] = []
        batches = _batched(calls)
        flow = _Flow(batches)
        while passage.is_clear and flow.goes_on:
            flow = _Flow(batches)
            answers = iter((yield from engine.store.enqueue_flow(flow)))
            for batch, jobs in flow.sent:
                stored = list(itertools.islice(answers, len(batch)))
                passage.stored(jobs, stored)
                handles += _handles(engine, batch, stored)
        for batch in itertools.chain(flow.left, batches):
            admitted = passage.admit(_jobs(batch))
            stored = [*(yield from engine.store.enqueue(admitted))]
            passage.stored(admitted, stored)
            handles += _handles(engine, batch, stored)
        return handles

    return atomically(all_of_them())


class _Flow(Generic[R]):
    """Some batches as the store takes them one behind the other: of calls that are alike and have
    no key. It ends before a batch that is not so, which is `left`."""

    def __init__(self, batches: Iterator[list[Bound[R]]]) -> None:
        self._batches = batches
        self.sent: list[tuple[list[Bound[R]], Alike]] = []
        self.left: list[list[Bound[R]]] = []
        self.goes_on = True

    def __iter__(self) -> Iterator[Alike]:
        for batch in itertools.islice(self._batches, _FLOW):
            jobs = _jobs(batch)
            if not isinstance(jobs, Alike) or jobs.job.key is not None:
                self.left.append(batch)
                break
            self.sent.append((batch, jobs))
            yield jobs
        self.goes_on = len(self.sent) == _FLOW


def _handles(
    engine: Engine, batch: Sequence[Bound[R]], stored: Sequence[Enqueued]
) -> list[Handle[R]]:
    return [
        Handle(engine, answer.id, created=answer.created, returns=call.asked.returns)
        for call, answer in zip(batch, stored, strict=True)
    ]


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
