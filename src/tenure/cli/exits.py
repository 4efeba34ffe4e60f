"""What the exit codes mean."""

from enum import IntEnum


class Exit(IntEnum):
    """How a command ended. docs/reference/commands.md is this list in words."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    NOT_FOUND = 3
    NOT_ALLOWED = 4
    CONFLICT = 5
    UNREACHABLE = 6
    PARTLY = 7
    SCHEMA = 8
    INTERRUPTED = 130
