"""An operation's steps: queries, raw SQL, pipelines, transaction marks."""

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
# Rows by column name, or tuples if the query requests them.
Rows: TypeAlias = Sequence[Any]


@dataclass(frozen=True, slots=True)
class Query:
    """A statement, by name. `no_timeout` turns off its deadline, and `as_tuples` returns tuples."""

    name: str
    params: Mapping[str, object]
    no_timeout: bool = False
    in_transaction: bool = False
    as_tuples: bool = False


@dataclass(frozen=True, slots=True)
class RawSql:
    """SQL that was built by the store itself.

    `session` means it changes more than the current transaction.
    """

    text: str
    session: bool = False


@dataclass(frozen=True, slots=True)
class Pipeline:
    """Independent queries with the same name, sent without waiting in between.

    Use it inside a transaction.
    """

    name: str
    queries: Iterable[Query]


class TransactionMark(Enum):
    """A transaction's boundaries; inside another transaction, a savepoint's."""

    BEGIN = "BEGIN"
    COMMIT = "COMMIT"
    ROLLBACK = "ROLLBACK"


Single: TypeAlias = Query | RawSql | TransactionMark
Step: TypeAlias = Single | Pipeline
Op: TypeAlias = Generator[Step, Rows, T]


def atomically(op: Op[T]) -> Op[T]:
    """Run an operation as one transaction. If it raises, nothing is stored."""
    yield TransactionMark.BEGIN
    try:
        answer = yield from op
    except Exception:
        yield TransactionMark.ROLLBACK
        raise
    yield TransactionMark.COMMIT
    return answer


def atomic(describe: Callable[P, Op[T]]) -> Callable[P, Op[T]]:
    """Run the operation that a method returns as one transaction."""

    @wraps(describe)
    def as_transaction(*args: P.args, **kwargs: P.kwargs) -> Op[T]:
        return atomically(describe(*args, **kwargs))

    return as_transaction


def stepwise(op: Op[T], perform: Callable[[Step], Op[Rows]]) -> Op[T]:
    """Replace each step of an operation with the steps that `perform` returns for it."""
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
