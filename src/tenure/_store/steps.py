"""The steps of an operation: queries, raw SQL, pipelines, transaction marks."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import wraps
from typing import TYPE_CHECKING, Any, ParamSpec, TypeAlias, TypeVar

from tenure.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


T = TypeVar("T")
P = ParamSpec("P")
Row: TypeAlias = Mapping[str, Any]
# Each by its columns' names, or a tuple where the query wants one.
Rows: TypeAlias = Sequence[Any]


@dataclass(frozen=True, slots=True)
class Query:
    """One statement of the store by its name, with its parameters by theirs.

    `no_timeout` has no deadline; `in_transaction` means something only inside a transaction;
    `as_tuples` wants
    rows as tuples in the statement's order, where they come by the hundred.
    """

    name: str
    params: Mapping[str, object]
    no_timeout: bool = False
    in_transaction: bool = False
    as_tuples: bool = False


@dataclass(frozen=True, slots=True)
class RawSql:
    """One statement that the store itself worked out: partitions, migrations. Never user input.

    `session` leaves something in the session beyond its transaction.
    """

    text: str
    session: bool = False


@dataclass(frozen=True, slots=True)
class Pipeline:
    """Queries of one name that need nothing of each other's answers: sent one behind the other,
    where the session can without waiting in between. The answer is the rows of each.

    For the inside of a transaction: by themselves, they would be one or several of them, as the
    session sends them.
    """

    name: str
    queries: Iterable[Query]


class TransactionMark(Enum):
    """The edges of a transaction; inside another one, or a caller's, of a part of it."""

    BEGIN = "BEGIN"
    COMMIT = "COMMIT"
    ROLLBACK = "ROLLBACK"


Single: TypeAlias = Query | RawSql | TransactionMark
Step: TypeAlias = Single | Pipeline
Op: TypeAlias = Generator[Step, Rows, T]


def atomically(op: Op[T]) -> Op[T]:
    """The same operation as one transaction: all of it, or nothing if it raises."""
    yield TransactionMark.BEGIN
    try:
        answer = yield from op
    except Exception:
        yield TransactionMark.ROLLBACK
        raise
    yield TransactionMark.COMMIT
    return answer


def atomic(describe: Callable[P, Op[T]]) -> Callable[P, Op[T]]:
    """The operations that a method describes, each as one transaction."""

    @wraps(describe)
    def as_transaction(*args: P.args, **kwargs: P.kwargs) -> Op[T]:
        return atomically(describe(*args, **kwargs))

    return as_transaction


def stepwise(op: Op[T], perform: Callable[[Step], Op[Rows]]) -> Op[T]:
    """The same operation with other steps: in the place of each, those that `perform` makes of
    it."""
    try:
        step = next(op)
        while True:
            try:
                rows = yield from perform(step)
            except StoreError as error:
                step = op.throw(error)
            else:
                step = op.send(rows)
    except StopIteration as stop:
        answer: T = stop.value
        return answer
