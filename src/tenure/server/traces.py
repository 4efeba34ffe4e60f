"""W3C trace context: noted with the jobs that a request asks for, and given to who works on them.

What cannot be read is left out, as the standard wants it, and refuses nothing. The names are those
that `tenure.contrib.otel` notes.
"""

import re
from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import Depends, Header

_PARENT = re.compile(
    r"(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}", re.ASCII
)
_STATE = re.compile(r"[\x20-\x7e]{1,512}", re.ASCII)


def read(notes: Mapping[str, Any]) -> dict[str, str]:
    """The trace context among these notes; a state is worth nothing without its parent."""
    parent, state = notes.get("traceparent"), notes.get("tracestate")
    if not isinstance(parent, str) or not _PARENT.fullmatch(parent):
        return {}
    if not isinstance(state, str) or not _STATE.fullmatch(state):
        return {"traceparent": parent}
    return {"traceparent": parent, "tracestate": state}


async def _sent(
    traceparent: Annotated[
        str | None, Header(description="W3C trace context; it goes with the job.")
    ] = None,
    tracestate: Annotated[str | None, Header(description="What belongs to it.")] = None,
) -> dict[str, str]:
    return read({"traceparent": traceparent, "tracestate": tracestate})


Traced = Annotated[dict[str, str], Depends(_sent)]
