"""The frames of an error that are the program's own, without those of libraries."""

import re
from collections.abc import Iterator

_FRAME = re.compile(r'^\s*File "(?P<path>[^"]*)", line \d+')
_OTHERS = ("site-packages", "dist-packages", "/lib/python", "<frozen ", "/tenure/")


def own(trace: str) -> str:
    """A Python trace with the frames of the program alone; what is no such trace stays whole."""
    kept = "\n".join(_kept(trace.splitlines()))
    return kept if _FRAME.search(kept) or any(map(_FRAME.match, kept.splitlines())) else trace


def _kept(lines: list[str]) -> Iterator[str]:
    ours = True
    for line in lines:
        if found := _FRAME.match(line):
            ours = not any(part in found["path"] for part in _OTHERS)
        elif not line.startswith("    "):
            ours = True
        if ours:
            yield line
