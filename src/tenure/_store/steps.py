"""The steps of an operation: queries, raw SQL, pipelines, transaction marks."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable


T = TypeVar("T")
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
