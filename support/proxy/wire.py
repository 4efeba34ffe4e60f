"""What the proxy recognises of PostgreSQL's protocol, in what it happens to read at once."""

from __future__ import annotations

import re

# A simple Query, or a Parse with or without a statement's name, whose whole text is COMMIT.
_COMMIT = re.compile(rb"(?:Q.{4}|P.{4}[^\0]*\0)\s*COMMIT\s*;?\s*\0", re.DOTALL | re.IGNORECASE)
_REQUESTS = frozenset(b"QPB")
_READY = b"Z\0\0\0\x05"


def is_request(data: bytes) -> bool:
    """A query, a parse or a bind: neither what opens a session nor what ends it."""
    return data[0] in _REQUESTS


def is_commit(data: bytes) -> bool:
    """Some message in it is a COMMIT. One prepared by name earlier is not recognised."""
    return b"OMMI" in data.upper() and _COMMIT.search(data) is not None


def is_answer(data: bytes, *, committed: bool) -> bool:
    """The server has answered to the end, and is in no transaction if it was a commit."""
    at = data.rfind(_READY)
    if at < 0:
        return False
    return not committed or data[at + 5 : at + 6] == b"I"
