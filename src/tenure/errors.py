"""Every error that Tenure raises deliberately. This module contains no logic.

::

    TenureError
    ├── PayloadError            arguments or a result are not JSON, or too large
    ├── CodecError              the codec could not seal or open a value
    ├── InvalidValue            an argument or option is invalid
    ├── LeaseLost               this attempt no longer holds the job: stop
    ├── ConfigError             a setting is missing or invalid
    ├── NotReady                the job has no result yet
    │   ├── JobFailed           the job failed
    │   └── JobCancelled        the job was cancelled
    ├── TokenRefused            an access token is malformed, unknown, expired or revoked
    ├── IdempotencyConflict     the idempotency key belongs to a different request
    ├── KeyHeldElsewhere        the key is held by a job you aren't allowed to see
    ├── QuotaExceeded           the access token or the queue has used up a quota
    ├── SchemaError
    │   ├── SchemaTooOld        run: tenure db migrate
    │   └── SchemaTooNew        upgrade Tenure
    └── StoreError
        ├── OutcomeUnknown      the write may or may not have happened: repeat it
        ├── Unreachable         the database didn't respond: try again later
        │   └── Overloaded      too many operations are waiting for a connection: try again later
        └── QueryFailed         the database rejected a statement
"""

from dataclasses import dataclass


class TenureError(Exception):
    """The base class for Tenure's errors."""


class PayloadError(TenureError):
    """Arguments or a result are not JSON, or are too large.

    Store the data elsewhere and pass a reference to it.
    """


class CodecError(TenureError):
    """The app's codec could not seal or open a value, or the app has no codec.

    A job whose arguments can't be opened is retried, because another worker may have the key.
    """


class InvalidValue(TenureError, ValueError):
    """An argument or option is invalid. The message names the rule and the fix."""


class LeaseLost(TenureError):
    """This attempt no longer holds the job: its lease expired, or was revoked or released.

    Let the exception end the handler. Writes through the job's transaction are rolled back. Another
    attempt may already be running.
    """


class ConfigError(TenureError):
    """A setting is missing or invalid. The message names it and the fix."""


class NotReady(TenureError):
    """The job has no result: it has not ended, or the handle has not read it.

    Call `handle.wait()` or `handle.get()` first.
    """


class JobFailed(NotReady):
    """The job failed, so it has no result.

    Args:
        message: The error message.
        reason: The job's `done_reason`.
        error: The last attempt's error, or None.

    Attributes:
        reason: The job's `done_reason`.
        error: The last attempt's error, or None.
    """

    def __init__(self, message: str, reason: str | None, error: "Error | None") -> None:
        super().__init__(message)
        self.reason: str | None = reason
        self.error: Error | None = error


class JobCancelled(NotReady):
    """The job was cancelled, so it has no result.

    Args:
        message: The error message.
        reason: The job's `done_reason`.

    Attributes:
        reason: The job's `done_reason`.
    """

    def __init__(self, message: str, reason: str | None) -> None:
        super().__init__(message)
        self.reason: str | None = reason


class TokenRefused(TenureError):
    """An access token was rejected. Create a new one with `tenure token create`.

    Args:
        message: The error message.
        why: `malformed`, `unknown`, `expired` or `revoked`.

    Attributes:
        why: `malformed`, `unknown`, `expired` or `revoked`.
    """

    def __init__(self, message: str, why: str) -> None:
        super().__init__(message)
        self.why: str = why


class IdempotencyConflict(TenureError):
    """An idempotency key was used for a different request within the last day.

    Use a new key, or resend the first request.
    """


class KeyHeldElsewhere(TenureError):
    """The deduplication key is held by a job in a queue the caller may not use.

    Use another key. An operator can free the key: `tenure key free`.
    """


class QuotaExceeded(TenureError):
    """The access token or the queue has used up a quota. Try again later.

    Args:
        message: The error message.
        retry_after: How many seconds to wait before trying again.

    Attributes:
        retry_after: How many seconds to wait before trying again.
    """

    def __init__(self, message: str, retry_after: float = 1.0) -> None:
        super().__init__(message)
        self.retry_after: float = retry_after


class SchemaError(TenureError):
    """The database schema is incompatible with this release."""


class SchemaTooOld(SchemaError):
    """The schema is older than this release needs. Run `tenure db migrate`."""

    @classmethod
    def check_first_migration(cls, name: str | None, schema: str) -> None:
        """Reject a schema from before the first release.

        Args:
            name: The name of the schema's first migration.
            schema: The schema's name, for the message.

        Raises:
            SchemaTooOld: The schema is from before the first release.
        """
        if name == "001_lease_store":
            raise cls(
                f"schema {schema} is from before the first release; drop it and migrate again: "
                f"DROP SCHEMA {schema} CASCADE, then tenure db migrate"
            )


class SchemaTooNew(SchemaError):
    """A newer release changed the schema in a way this one cannot use. Upgrade Tenure."""


class StoreError(TenureError):
    """The base class for database errors."""


class OutcomeUnknown(StoreError):
    """A write may or may not be durable, because the connection broke before the response arrived.

    Repeating the write is safe if it is an enqueue with the same key or a completion with the same
    lease.
    """


class Unreachable(StoreError):
    """The database didn't respond in time, or isn't accepting writes. Try again later."""


class Overloaded(Unreachable):
    """Too many operations are waiting for a connection. Nothing changed. Try again later."""


class QueryFailed(StoreError):
    """The database rejected a statement, and nothing changed.

    Args:
        message: The database's message.
        sqlstate: PostgreSQL's error code.
        statement: The statement's name.
        constraint: The violated constraint, or None.
        source: The server function that rejected it, or None.

    Attributes:
        sqlstate: PostgreSQL's error code.
        statement: The statement's name.
        constraint: The violated constraint, or None.
        source: The server function that rejected it, or None.
    """

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
        # The server's function name identifies the error, because its message may be localized.
        self.source = source

    @property
    def is_data_error(self) -> bool:
        """Whether a value in the statement is invalid, in which case other values may work."""
        return self.sqlstate[:2] in {"22", "54"} and not self._is_notify_queue_full

    @property
    def is_conflict(self) -> bool:
        """Whether a retry may succeed, for example after a deadlock or a lost race."""
        return self.sqlstate in {"40001", "40P01", "55P03"}

    @property
    def is_temporary(self) -> bool:
        """Whether the same statement may succeed later.

        This is true for a full disk, low memory, too many connections, a lock or statement timeout,
        a deadlock, and a server that is temporarily read-only.
        """
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
        """Whether the statement exceeded `statement_timeout` or was canceled."""
        return self.sqlstate == "57014"

    @property
    def is_missing_schema(self) -> bool:
        """Whether a table or the schema is missing. Run `tenure db migrate`."""
        return self.sqlstate in {"42P01", "3F000"}

    @property
    def is_missing_partition(self) -> bool:
        """Whether the row's day has no partition.

        PostgreSQL names a failed check constraint in its error, but not a missing partition.
        """
        return self.sqlstate == "23514" and self.constraint is None


class Stopped(BaseException):
    """Raised inside a `def` handler that must stop now.

    The cause can be a timeout, a cancel request, a lease at risk, or a worker shutdown. The class
    is not an `Exception`, so `except Exception` does not catch it. Clean up and re-raise. You no
    longer hold the job, so any further write through it is rejected.
    """


@dataclass(frozen=True, slots=True)
class Error:
    """An error as Tenure stores it.

    Attributes:
        type: The exception's class name.
        message: The exception's text.
        trace: The traceback.
        signature: Identifies similar errors so that they can be grouped.
    """

    type: str
    message: str
    trace: str = ""
    signature: str = ""
