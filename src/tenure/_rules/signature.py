"""Error signatures: what two errors of one cause have in common."""

import re

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
