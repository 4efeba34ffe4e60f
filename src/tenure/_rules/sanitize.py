"""Make results, errors and logs storable; the signature of an error."""

import json
import re
from dataclasses import replace

from tenure._model.attempt import AttemptOutcome
from tenure._model.ids import Json
from tenure._model.job import State
from tenure._model.outcome import COMPLETED, Settlement, SettleRequest
from tenure._rules.payload import MAX_RESULT, encode
from tenure.errors import Error

MAX_SIGNATURE = 200
_VARYING = re.compile(
    r"""0x[0-9a-fA-F]+ | [0-9a-fA-F]{8}-[0-9a-fA-F-]{27} | \b[0-9a-fA-F]{16,}\b | \d+ """
    r"""| '[^']*' | "[^"]*" """,
    re.VERBOSE,
)


def signature(kind: str, message: str) -> str:
    """The error's type and first line with numbers, ids, addresses and quotations left out."""
    first = message.strip().split("\n", 1)[0]
    return f"{kind}: {_VARYING.sub('…', first)}"[:MAX_SIGNATURE]


MAX_TYPE = 200
MAX_MESSAGE = 4 * 1024
MAX_TRACE = 16 * 1024
MAX_LOG = 16 * 1024
MAX_REASON = 200
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


def text(value: str, limit: int, *, keep: str = "head") -> str:
    """The text with NUL and lone surrogates escaped, cut to `limit` characters."""
    safe = _UNSTORABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", value)
    if len(safe) <= limit:
        return safe
    return safe[:limit] if keep == "head" else safe[-limit:]


def result(value: Json) -> Json:
    """The result with its texts escaped; PayloadError if it is not JSON within the limit."""
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
            # A name that is no text is left for `encode` to refuse.
            return {
                _escaped(name) if isinstance(name, str) else name: _escaped(item)
                for name, item in value.items()
            }
        case _:
            return value


def error(value: Error) -> Error:
    """The error with its texts escaped and cut, and its signature drawn if it has none."""
    kind = text(value.type, MAX_TYPE)
    message = text(value.message, MAX_MESSAGE)
    return Error(
        kind,
        message,
        text(value.trace, MAX_TRACE, keep="tail"),
        text(value.signature, MAX_TYPE) or signature(kind, message),
    )


def sanitized(ended: SettleRequest) -> SettleRequest:
    """The ending made fit for the store. A result that cannot be made fit fails the job."""
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
    except Exception as why:  # noqa: BLE001 - one ending that cannot be read holds up no other
        return as_unstorable(ended._replace(log=log), str(why))
    return ended._replace(settlement=settlement, log=log)


def as_unstorable(ended: SettleRequest, why: str) -> SettleRequest:
    """The ending of a job whose own ending the store refuses: failed, and not tried again."""
    told = error(Error("Unstorable", why))
    failed = Settlement(State.FAILED, AttemptOutcome.FAILED, reason="unstorable", error=told)
    return ended._replace(settlement=failed)


def refused_result(ended: SettleRequest) -> str:
    """What a refused settle wanted to say, as JSON text for its attempt row."""
    said = ended.settlement
    return json.dumps(
        {
            "state": said.state,
            "result": said.result,
            "error": None if said.error is None else f"{said.error.type}: {said.error.message}",
        },
        ensure_ascii=False,
    )
