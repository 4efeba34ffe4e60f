"""Print the constraints of the lock of minimums."""

from support.minimums import constraints

print(constraints(), end="")  # noqa: T201 - that is its purpose
