"""Make results, errors and logs storable; compute error signatures."""

import json
import re
from dataclasses import replace

from tenure._model.attempt import AttemptOutcome
from tenure._model.ids import Json
from tenure._model.job import State
from tenure._model.outcome import COMPLETED, Settlement, SettleRequest
from tenure._rules.payload import MAX_RESULT, check_report, encode
from tenure.errors import Error

MAX_SIGNATURE = 200
_VARYING = re.compile(
    r"""0x[0-9a-fA-F]+ | [0-9a-fA-F]{8}-[0-9a-fA-F-]{27} | \b[0-9a-fA-F]{16,}\b | \d+ """
    r"""| '[^']*' | "[^"]*" """,
    re.VERBOSE,
)


def signature(kind: str, message: str) -> str:
    """Return the error's type and first line without numbers, ids, addresses and quotes."""
    first = message.strip().split("\n", 1)[0]
    return f"{kind}: {_VARYING.sub('…', first)}"[:MAX_SIGNATURE]


MAX_TYPE = 200
MAX_MESSAGE = 4 * 1024
MAX_TRACE = 16 * 1024
MAX_LOG = 16 * 1024
MAX_REASON = 200
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


def text(value: str, limit: int, *, keep: str = "head") -> str:
    """Return the text with NUL and lone surrogates escaped, cut to `limit` characters."""
    safe = _UNSTORABLE.sub(lambda match: f"\\u{ord(match[0]):04x}", value)
    if len(safe) <= limit:
        return safe
    return safe[:limit] if keep == "head" else safe[-limit:]


def result(value: Json) -> Json:
    """Return the result with texts escaped. Raise PayloadError if it can't be stored."""
    safe = _escaped(value)
    encode(safe, limit=MAX_RESULT, what="the results")
    return safe


def _escaped(value: Json) -> Json:
    match value:
        case str():
            return text(value, len(value) * 6)
        case list() | tuple():
            return [_escaped(item) for item in value]
        case dict():
            # A name that isn't text is left for `encode` to reject.
            return {
                _escaped(name) if isinstance(name, str) else name: _escaped(item)
                for name, item in value.items()
            }
        case _:
            return value


def error(value: Error) -> Error:
    """Return the error with texts escaped and truncated, and with a signature."""
    kind = text(value.type, MAX_TYPE)
    message = text(value.message, MAX_MESSAGE)
    return Error(
        kind,
        message,
        text(value.trace, MAX_TRACE, keep="tail"),
        text(value.signature, MAX_TYPE) or signature(kind, message),
    )


def sanitized(ended: SettleRequest) -> SettleRequest:
    """Make the ending storable. A result that can't be stored fails the job."""
    settlement = ended.settlement
    if settlement is COMPLETED and ended.log is None:
        return ended
    log = None if ended.log is None else text(ended.log, MAX_LOG, keep="tail")
    try:
        settlement = replace(
            settlement,
            result=result(settlement.result),
            error=None if settlement.error is None else error(settlement.error),
            reason=None if settlement.reason is None else text(settlement.reason, MAX_REASON),
        )
        if settlement.report is not None:
            check_report(settlement.report.cursor, settlement.report.items)
    except Exception as why:  # noqa: BLE001 - one bad ending must not block the others
        return as_unstorable(ended._replace(log=log), str(why))
    return ended._replace(settlement=settlement, log=log)


def as_unstorable(ended: SettleRequest, why: str) -> SettleRequest:
    """Fail a job whose ending the store rejects, without a retry."""
    unstorable = error(Error("Unstorable", why))
    failed = Settlement(State.FAILED, AttemptOutcome.FAILED, reason="unstorable", error=unstorable)
    return ended._replace(settlement=failed)


def refused_result(ended: SettleRequest) -> str:
    """Return the ending that a rejected settle asked for, as JSON for its attempt."""
    settlement = ended.settlement
    return json.dumps(
        {
            "state": settlement.state,
            "result": settlement.result,
            "error": None
            if settlement.error is None
            else f"{settlement.error.type}: {settlement.error.message}",
        },
        ensure_ascii=False,
    )
