"""Join the transaction on Django's connections: `django.db.connection` and the like."""

from collections.abc import Callable
from typing import Any, TypeVar

from tenure._store.engine import Runner
from tenure._store.steps import Op
from tenure.errors import InvalidValue

T = TypeVar("T")


def django_connection(given: Any) -> Any:
    """Return this thread's driver connection, connecting if needed."""
    if given.vendor != "postgresql":
        raise InvalidValue(
            f"Django's database {given.alias!r} is {given.vendor}, but Tenure's is PostgreSQL, and "
            "a transaction cannot span both; enqueue without connection="
        )
    given.ensure_connection()
    given.validate_no_broken_transaction()
    return given.connection


class DjangoSession:
    """Runs operations for async code, on the thread that owns Django's connections."""

    def __init__(self, given: Any, join: Callable[[Any], Runner]) -> None:
        self._given = given
        self._join = join

    async def run(self, op: Op[T]) -> T:
        from asgiref.sync import sync_to_async  # noqa: PLC0415 - comes with Django

        answer: T = await sync_to_async(self._run)(op)
        return answer

    def _run(self, op: Op[T]) -> T:
        return self._join(self._given).run(op)
