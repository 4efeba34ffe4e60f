"""Queries for secrets that haven't been seen before: access tokens, sessions and sign-in codes.

A flood of made-up secrets must not delay other requests. These queries therefore have their own
connections, and each address has a limited number of tries.
"""

from collections.abc import Generator
from typing import Any, TypeVar

from tenure.app import Tenure
from tenure.errors import TokenRefused
from tenure.server.problems import ProblemError
from tenure.server.throttle import Buckets

T = TypeVar("T")
_CONNECTIONS, _WAITING = 2, 200
TRIES, TRIES_PER_SECOND = 200, 20.0


class Strangers:
    """Runs the queries for unknown secrets.

    Args:
        app: The app whose secrets are accepted.
    """

    def __init__(self, app: Tenure) -> None:
        self._engine = app.engine.reserve_pool(
            "strangers", connections=_CONNECTIONS, waiting=_WAITING
        )
        self._tries = Buckets(burst=TRIES, per_second=TRIES_PER_SECOND)

    async def look_up(self, query: Generator[Any, Any, T], *, address: str, what: str) -> T:
        """Run a query that raises TokenRefused for an unknown secret. Only refusals are counted."""
        if not self._tries.take(address):
            raise ProblemError(
                "too-many-requests", f"this address has sent too many unknown {what}"
            )
        is_refused = False
        try:
            return await self._engine.arun(query)
        except TokenRefused:
            is_refused = True
            raise
        finally:
            if not is_refused:
                self._tries.refund(address)
