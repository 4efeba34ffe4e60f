"""The errors that Tenure raises, as a tree, and the error that a job failed with.

Every error Tenure raises on purpose, each with its remedy. No logic.

TenureError
├── PayloadError            the arguments or result cannot be stored as JSON within the limits
├── InvalidValue            a name, a number or a duration is outside what is allowed
├── LeaseLost               the job belongs to somebody else now, or to nobody: stop
├── ConfigError             something that must be set is not, or does not fit
├── NotReady                the job has not ended yet, or was not looked at: no result
│   ├── JobFailed           it has failed: no result
│   └── JobCancelled        it was cancelled: no result
├── TokenRefused            an access token is mistyped, unknown, expired or revoked
├── IdempotencyConflict     the idempotency key was used for another request
├── SchemaError
│   ├── SchemaTooOld        run: tenure db migrate
│   └── SchemaTooNew        upgrade this release
└── StoreError
    ├── OutcomeUnknown      it may or may not have happened: ask again, with the same key or lease
    ├── Unreachable         the database did not answer: try again later
    └── QueryFailed         the database refused a statement: `is_temporary` if it may pass later
"""

from dataclasses import dataclass


class TenureError(Exception):
    """The base of all errors raised by Tenure on purpose."""


class PayloadError(TenureError):
    """The arguments or the result cannot be stored as JSON within the limits."""


class InvalidValue(TenureError, ValueError):
    """A name, a number or a duration is outside what is allowed."""


class LeaseLost(TenureError):
    """The lease was rescued, revoked or released: nothing more may be done in its name.

    What was written through the job's transaction is rolled back; the job runs, or has
    run, under another lease.
    """


class ConfigError(TenureError):
    """Something that must be set before work can begin is missing, or does not fit."""


class NotReady(TenureError):
    """A job's result was asked for, and there is none: it has not ended, or not well."""


class JobFailed(NotReady):
    """The result of a job was asked for that has failed; `reason` is why it was given up, `error`
    the last attempt's, or None if that had none."""

    def __init__(self, message: str, reason: str | None, error: "Error | None") -> None:
        super().__init__(message)
        self.reason: str | None = reason
        self.error: Error | None = error


class JobCancelled(NotReady):
    """The result of a job was asked for that was cancelled; `reason` is why."""

    def __init__(self, message: str, reason: str | None) -> None:
        super().__init__(message)
        self.reason: str | None = reason


class TokenRefused(TenureError):
    """An access token lets nobody in; `why` is malformed, unknown, expired or revoked."""

    def __init__(self, message: str, why: str) -> None:
        super().__init__(message)
        self.why: str = why


class IdempotencyConflict(TenureError):
    """An idempotency key came with another request than the first time."""


class SchemaError(TenureError):
    """The database's schema and this release do not fit."""


class SchemaTooOld(SchemaError):
    """The schema has not been migrated to what this release needs."""

    @classmethod
    def check_first_migration(cls, name: str | None, schema: str) -> None:
        """Refuse a schema from before the first release, known by its first migration's name."""
        if name == "001_lease_store":
            raise cls(
                f"schema {schema} was made by a version before the first release; drop it and "
                f"migrate again: DROP SCHEMA {schema} CASCADE, then tenure db migrate"
            )


class SchemaTooNew(SchemaError):
    """The schema was migrated by a newer release than this one can work with."""


class StoreError(TenureError):
    """The store could not do what was asked."""


class OutcomeUnknown(StoreError):
    """A write may or may not have become durable: its answer was cut off.

    Asking again is safe: an enqueue with the same key, a settle with the same lease.
    """


class Unreachable(StoreError):
    """The database did not answer in time, or is not one that can be written to."""


class QueryFailed(StoreError):
    """The database refused a statement; `sqlstate` says why."""

    def __init__(
        self,
        message: str,
        *,
        sqlstate: str,
        statement: str,
        constraint: str | None = None,
        source: str | None = None,
    ) -> None:
        super().__init__(f"{statement}: {message} (SQLSTATE {sqlstate})")
        self.sqlstate = sqlstate
        self.statement = statement
        self.constraint = constraint
        # The server's own function that refused it: texts are in the server's language.
        self.source = source

    @property
    def is_data_error(self) -> bool:
        """Whether a value in the statement is to blame, so that others may pass without it."""
        return self.sqlstate[:2] in {"22", "54"} and not self._is_notify_queue_full

    @property
    def is_conflict(self) -> bool:
        """Whether the same statement may pass when sent again: a deadlock or a lost race."""
        return self.sqlstate in {"40001", "40P01", "55P03"}

    @property
    def is_temporary(self) -> bool:
        """Whether nothing was done, and the same may pass later: a full disk, no memory or
        connection left, a lock that was waited for too long, a statement that took too long, a
        deadlock, a server that takes no writes for now."""
        return (
            self.is_conflict
            or self.is_timeout
            or self._is_notify_queue_full
            or self.sqlstate[:2] == "53"
            or self.sqlstate in {"25006", "58030"}
        )

    @property
    def _is_notify_queue_full(self) -> bool:
        return self.sqlstate == "54000" and self.source == "PreCommit_Notify"

    @property
    def is_timeout(self) -> bool:
        """Whether the statement took longer than it may (`statement_timeout`), or was canceled."""
        return self.sqlstate == "57014"

    @property
    def is_missing_schema(self) -> bool:
        """Whether a table or the schema itself is not there: nobody has migrated it."""
        return self.sqlstate in {"42P01", "3F000"}

    @property
    def is_missing_partition(self) -> bool:
        """Whether a row was to be filed under a day that has no partition.

        A check that failed names its constraint; a row that fits no partition has none.
        """
        return self.sqlstate == "23514" and self.constraint is None


class Stopped(BaseException):
    """Raised into a handler's thread that must end now: its time is up or its lease is at risk.

    Like asyncio's CancelledError it is no Exception, so that `except Exception` lets it
    pass. Clean up and let it go on; what is done after it happens in nobody's name.
    """


@dataclass(frozen=True, slots=True)
class Error:
    """An error in words that can be stored: its type, message, trace and signature."""

    type: str
    message: str
    trace: str = ""
    signature: str = ""
