"""The names by which things are known, and JSON. Opaque: nothing reads meaning out of an id."""

from typing import Any, NewType, TypeAlias
from uuid import UUID

JobId = NewType("JobId", int)
Token = NewType("Token", int)
WorkerId = NewType("WorkerId", UUID)

# A value that JSON can carry. Python's types cannot say it exactly without a recursive
# alias that callers would have to cast into, so the shape is checked in _rules.payload.
Json: TypeAlias = Any
