"""Seal a job's data with the app's codec before it is stored, and open it again.

A sealed value is stored as `{"$sealed": "…"}` and a sealed text as `$sealed:…`, both in base64.
Programs without the codec, such as the server, can tell that something is sealed, but nothing more.
"""

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, Protocol

from tenure._model.attempt import AttemptRow
from tenure._model.ids import Json
from tenure._model.job import JobRow, NewJob, UniformBatch
from tenure._model.outcome import COMPLETED, FinalReport, SettleRequest
from tenure._rules import payload
from tenure._rules.sanitize import MAX_LOG, MAX_MESSAGE, MAX_TRACE, sanitized
from tenure.errors import CodecError, Error

SealedField = Literal["args", "result", "cursor", "items", "log", "error"]
SEALED_KEY = "$sealed"
SEALED_PREFIX = "$sealed:"
# What lists and pages show instead.
SEALED = "<sealed>"
_JSON = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)
# How much a codec may add to a text: a nonce, a tag and a key's name.
_ADDED = 200
_TOO_LONG = "(the sealed text is too long to store)"
_NOT_SEALED = "(the codec could not seal this text)"


class Codec(Protocol):
    """Seals and opens the data in jobs. Pass one as `Tenure(codec=…)`.

    Both methods must be thread-safe. They must also be fast, because they run for every job. They
    may raise any exception, which becomes a `CodecError`.
    """

    def seal(self, data: bytes, *, task: str, field: str) -> bytes:
        """Return the data in a form that only `open` can read.

        Args:
            data: The data to seal.
            task: The task's name.
            field: `"args"`, `"result"`, `"cursor"`, `"items"`, `"log"` or `"error"`.

        Returns:
            The sealed bytes. Bind them to the task and the field, so that a value can't be
            opened after being moved elsewhere in the database.
        """

    def open(self, data: bytes, *, task: str, field: str) -> bytes:
        """Return the original data.

        Args:
            data: The sealed bytes.
            task: The task's name.
            field: As in `seal`.

        Returns:
            The data.
        """


def is_sealed(value: Json) -> bool:
    """Return whether a stored value is sealed."""
    return isinstance(value, dict) and len(value) == 1 and SEALED_KEY in value


class Sealing:
    """Seals and opens job data with a codec. Without a codec, all data stays as it is.

    `has_codec` lets a caller on the hot path skip calls that would change nothing.
    """

    def __init__(self, codec: Codec | None = None) -> None:
        self._codec = codec
        self.has_codec: bool = codec is not None

    def jobs(self, jobs: Sequence[NewJob]) -> Sequence[NewJob]:
        """Seal the arguments of jobs about to be enqueued."""
        if self._codec is None:
            return jobs
        if isinstance(jobs, UniformBatch):
            return self.batch(jobs)
        return [replace(job, args=self._args(job.args, job.task)) for job in jobs]

    def arguments(self, args: Json, *, task: str) -> Json:
        """Seal the new arguments of a stored job."""
        return args if self._codec is None else self._args(args, task)

    def batch(self, jobs: UniformBatch) -> UniformBatch:
        """Seal the arguments of jobs that differ only in them."""
        if self._codec is None:
            return jobs
        return UniformBatch(jobs.job, [self._args(args, jobs.job.task) for args in jobs.args])

    def report(self, report: Mapping[str, Any], *, task: str) -> Mapping[str, Any]:
        """Seal the cursor, the items and the log of a progress report."""
        if self._codec is None:
            return report
        sealed = self._final(FinalReport(report["cursor"], report["items"]), task)
        log = self._log(report["log"], task)
        return {**report, "cursor": sealed.cursor, "items": sealed.items, "log": log}

    def _final(self, report: FinalReport, task: str) -> FinalReport:
        cursor, items = report.cursor, report.items
        if cursor is not None:
            cursor = self._value(_fitting(cursor, "the cursor"), task, "cursor")
        if items:
            items = {
                key: self._value(_fitting(item, "the items"), task, "items")
                for key, item in items.items()
            }
        return FinalReport(cursor, items)

    def ending(self, ended: SettleRequest, *, task: str) -> SettleRequest:
        """Seal the result, the last report, the error's texts and the log of an ended attempt.

        Raise CodecError if the codec can't seal the result or the report, or PayloadError if the
        sealed result is too large to store.
        """
        if self._codec is None or (ended.settlement is COMPLETED and ended.log is None):
            return ended
        ended = sanitized(ended)
        result = ended.settlement.result
        if result is not None:
            result = self._value(result, task, "result")
            payload.encode(result, limit=payload.MAX_RESULT, what="the sealed results")
        report = ended.settlement.report
        settlement = replace(
            ended.settlement,
            result=result,
            error=self._error(ended.settlement.error, task),
            report=None if report is None else self._final(report, task),
        )
        return ended._replace(settlement=settlement, log=self._log(ended.log, task))

    def open_claimed(self, job: JobRow) -> JobRow:
        """Open the arguments and the cursor, which the handler reads.

        Raise CodecError if this app can't open them.
        """
        if not (is_sealed(job.args) or is_sealed(job.cursor)):
            return job
        return replace(
            job,
            args=self.open_value(job.args, job.task, "args"),
            cursor=self.open_value(job.cursor, job.task, "cursor"),
        )

    def open_job(self, job: JobRow) -> JobRow:
        """Open a job's arguments, result and cursor. Raise CodecError if the codec can't open them.

        Without a codec, return the job as it is.
        """
        if self._codec is None or not any(map(is_sealed, (job.args, job.result, job.cursor))):
            return job
        return replace(
            job,
            args=self.open_value(job.args, job.task, "args"),
            result=self.open_value(job.result, job.task, "result"),
            cursor=self.open_value(job.cursor, job.task, "cursor"),
        )

    def open_job_if_possible(self, job: JobRow) -> JobRow:
        """Open a job, or return it as it is if the codec can't open it."""
        try:
            return self.open_job(job)
        except CodecError:
            return job

    def open_attempt(self, attempt: AttemptRow, *, task: str) -> AttemptRow:
        """Open an attempt's texts. Without a codec, return the attempt as it is."""
        if self._codec is None:
            return attempt
        return replace(
            attempt,
            error_message=self._opened(attempt.error_message, task, "error"),
            error_trace=self._opened(attempt.error_trace, task, "error"),
            log=self._opened(attempt.log, task, "log"),
        )

    def _opened(self, text: str | None, task: str, field: SealedField) -> str | None:
        return None if text is None else self.open_text(text, task, field)

    def open_value(self, value: Json, task: str, field: SealedField) -> Json:
        """Open a value if it is sealed. Raise CodecError if this app can't open it."""
        if not is_sealed(value):
            return value
        return json.loads(self._open(value[SEALED_KEY], task, field))

    def open_text(self, text: str, task: str, field: SealedField) -> str:
        """Open a text if it is sealed. Raise CodecError if this app can't open it."""
        if not text.startswith(SEALED_PREFIX):
            return text
        return self._open(text.removeprefix(SEALED_PREFIX), task, field).decode()

    def _args(self, args: Json, task: str) -> Json:
        return self._value(_fitting(args, "the arguments"), task, "args")

    def _value(self, value: Json, task: str, field: SealedField) -> Json:
        return {SEALED_KEY: self._seal(_JSON.encode(value).encode(), task, field)}

    def _error(self, error: Error | None, task: str) -> Error | None:
        """Seal an error's texts. Its type stays readable, and is the whole signature."""
        if error is None:
            return None
        message = self._text(error.message, task, "error", limit=MAX_MESSAGE, keep="head")
        trace = self._text(error.trace, task, "error", limit=MAX_TRACE, keep="tail")
        return Error(error.type, message, trace, error.type)

    def _log(self, log: str | None, task: str) -> str | None:
        return None if log is None else self._text(log, task, "log", limit=MAX_LOG, keep="tail")

    def _text(self, text: str, task: str, field: SealedField, *, limit: int, keep: str) -> str:
        if not text:
            return text
        # Base64 makes four characters of three bytes.
        data, most = text.encode(errors="backslashreplace"), limit * 3 // 4 - _ADDED
        data = data[:most] if keep == "head" else data[-most:]
        whole = data.decode(errors="ignore").encode()
        try:
            sealed = SEALED_PREFIX + self._seal(whole, task, field)
        except CodecError:
            return _NOT_SEALED
        return sealed if len(sealed) <= limit else _TOO_LONG

    def _seal(self, data: bytes, task: str, field: SealedField) -> str:
        if self._codec is None:
            raise AssertionError("an app without a codec seals nothing")
        try:
            return base64.b64encode(self._codec.seal(data, task=task, field=field)).decode()
        except Exception as error:
            # Don't include the text of the codec's error, because it may quote the data to be
            # sealed.
            raise CodecError(
                f"the codec could not seal the {field} of a job of task {task}: "
                f"{type(error).__name__}"
            ) from error

    def _open(self, sealed: object, task: str, field: SealedField) -> bytes:
        what = f"the {field} of a job of task {task}"
        if self._codec is None:
            raise CodecError(
                f"{what} is sealed, and this app has no codec; pass Tenure(codec=…) the one that "
                "sealed it"
            )
        try:
            data = base64.b64decode(str(sealed), validate=True)
            return self._codec.open(data, task=task, field=field)
        except Exception as error:
            raise CodecError(
                f"the codec could not open {what}: {type(error).__name__}; check that it has the "
                "key that sealed it"
            ) from error


def _fitting(value: Json, what: str) -> Json:
    """Return the value, or raise PayloadError if it couldn't be stored unsealed either."""
    payload.check_json(value, what)
    return value


NOT_SEALING = Sealing()
