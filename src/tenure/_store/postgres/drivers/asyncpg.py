"""Join the transaction on an asyncpg connection."""

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, TypeVar

from tenure._store.postgres.connections import DEADLINE
from tenure._store.postgres.sessions import SessionBase, arun, label
from tenure._store.steps import Op, Pipeline, Query, RawSql, Rows, Step, TransactionMark
from tenure.errors import OutcomeUnknown, QueryFailed, Unreachable

T = TypeVar("T")
_SECONDS = DEADLINE.total_seconds()
_PARAMETER = re.compile(r"\$(\d+)(?:::(\w+(?:\[\])?))?")


class AsyncpgSession(SessionBase):
    """Runs operations in a caller's transaction, over asyncpg."""

    def __init__(self, connection: Any, *, schema: str) -> None:
        super().__init__(schema)
        self._connection = connection

    async def run(self, op: Op[T]) -> T:
        with self._translating_errors():
            return await arun(op, self._perform)

    async def _perform(self, step: Step) -> Rows:
        if isinstance(step, Pipeline):
            return [await self._perform(query) for query in step.queries]
        self._check(step)
        with self._driver_errors(step):
            match step:
                case Query(name, params):
                    statement = self._statements[name]
                    arguments = statement.arguments(params)
                    records = await self._connection.fetch(
                        as_texts(statement.text), *arguments, timeout=_SECONDS
                    )
                    return [(tuple if step.as_tuples else dict)(record) for record in records]
                case RawSql(text):
                    await self._connection.execute(text, timeout=_SECONDS)
                case TransactionMark():
                    await self._connection.execute(self._mark(step), timeout=_SECONDS)
        return []

    def _inside(self) -> bool:
        return bool(self._connection.is_in_transaction())

    @contextmanager
    def _driver_errors(self, step: Step) -> Iterator[None]:
        asyncpg: Any = sys.modules["asyncpg"]
        name = label(step)
        was_open = self._inside()
        try:
            yield
        except asyncpg.PostgresError as error:
            if not self._connection.is_closed():
                raise QueryFailed(
                    str(error),
                    sqlstate=error.sqlstate,
                    statement=name,
                    constraint=error.constraint_name,
                ) from error
            raise _broken(name, was_open=was_open) from error
        except asyncpg.InterfaceError as error:
            raise Unreachable(f"{name}: {error}; nothing was changed") from error
        except (TimeoutError, OSError, asyncpg.InternalClientError) as error:
            raise _broken(name, was_open=was_open) from error


def _broken(name: str, *, was_open: bool) -> Unreachable | OutcomeUnknown:
    if was_open:
        return Unreachable(f"{name}: the connection broke, nothing was changed")
    return OutcomeUnknown(f"{name}: the connection broke before the answer; try again")


@cache
def as_texts(statement: str) -> str:
    """Return the statement with every parameter sent as text and cast inside the statement.

    Otherwise, asyncpg would encode each parameter by its type, using the caller's codecs.
    """
    types: dict[str, str] = {}
    for number, kind in _PARAMETER.findall(statement):
        types[number] = types.get(number) or kind
    return _PARAMETER.sub(lambda match: f"${match[1]}::text::{types[match[1]]}", statement)
