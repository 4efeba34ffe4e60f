"""What every session shares, whatever driver it speaks through: the edges of transactions, what
may be said outside one, and what a table that is not there means. The speaking is the sessions'."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

from tenure._store.postgres.statements import statements
from tenure._store.steps import Pipeline, Query, Step, TransactionMark
from tenure.errors import InvalidValue, QueryFailed, SchemaTooOld

# By then a statement has its answer, or nobody knows what became of it.
DEADLINE = timedelta(seconds=15)


class SessionBase:
    """Performs the steps of operations in one schema."""

    def __init__(self, schema: str) -> None:
        self._schema = schema
        self._statements = statements(schema)
        self._begin = TransactionMark.BEGIN.value
        self._marks: list[bool] = []

    def _inside(self) -> bool:
        """Whether the next statement is part of a transaction, begun or about to be."""
        raise NotImplementedError

    def _discard(self) -> None:
        """Let no connection of our own live on inside a transaction that nobody will end."""

    def _after(self) -> None:
        """What follows an operation, however it ended."""

    def _check(self, step: Step) -> None:
        if isinstance(step, Query) and step.in_transaction and not self._inside():
            raise InvalidValue(
                f"{step.name} means nothing outside a transaction: its lock would be gone at once; "
                "open one first"
            )

    def _mark(self, mark: TransactionMark) -> str:
        """The edge of a transaction, or of a part of one: inside another's, or a caller's."""
        if mark is TransactionMark.BEGIN:
            self._marks.append(self._inside())
            return "SAVEPOINT tenure" if self._marks[-1] else self._begin
        if not self._marks.pop():
            return str(mark.value)
        return (
            "RELEASE tenure"
            if mark is TransactionMark.COMMIT
            else "ROLLBACK TO tenure; RELEASE tenure"
        )

    @contextmanager
    def _translating_errors(self) -> Iterator[None]:
        """After an operation that raised: leave no transaction open, and say what a table that is
        not there means to a statement of ours; a migration's own say it themselves."""
        self._marks.clear()
        try:
            yield
        except QueryFailed as error:
            self._discard()
            if error.is_missing_schema and error.statement in self._statements:
                raise SchemaTooOld(
                    f"the schema {self._schema} is not there, or not whole; run: tenure db migrate"
                ) from error
            raise
        except BaseException:
            self._discard()
            raise
        finally:
            self._after()


def label(step: Step) -> str:
    """A step's name in messages."""
    return step.name if isinstance(step, Query | Pipeline) else type(step).__name__.lower()
