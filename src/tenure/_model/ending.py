"""How an attempt ended."""

from enum import StrEnum


class Ending(StrEnum):
    """How an attempt ended, as its row says."""

    COMPLETED = "completed"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    SNOOZED = "snoozed"
    RELEASED = "released"
    CANCELLED = "cancelled"
    LOST = "lost"
    REVOKED = "revoked"
