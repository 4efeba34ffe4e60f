"""A thread that looks at a database all the time, and tells how often it did."""

from __future__ import annotations

import contextlib
import threading
import time
from typing import TYPE_CHECKING, Any, Self

import psycopg

if TYPE_CHECKING:
    from collections.abc import Callable

LOOKS = "looks of the witness per second"
# At the least: a lease is renewed once per second, and each end is seen.
OFTEN = 2.0


class Looking:
    """From entering it to leaving it, on its own connection; on a new one where that is lost."""

    def __init__(
        self, url: str, look: Callable[[psycopg.Connection[Any]], None], *, every: float
    ) -> None:
        self._url = url
        self._look = look
        self._every = every
        self._looks = 0
        self._began_at = self._ended_at = 0.0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="witness", daemon=True)

    def __enter__(self) -> Self:
        self._began_at = time.monotonic()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        if not self._thread.is_alive():
            self._looks = 0
        self._ended_at = time.monotonic()
        self._over.set()
        self._thread.join(30)

    @property
    def pace(self) -> float:
        """How many times per second it has looked; 0 if it did not do so to the end."""
        return self._looks / (self._ended_at - self._began_at)

    def _watch(self) -> None:
        while not self._over.wait(self._every):
            with (
                contextlib.suppress(psycopg.Error),
                psycopg.connect(self._url, autocommit=True, connect_timeout=5) as connection,
            ):
                while not self._over.wait(self._every):
                    self._look(connection)
                    self._looks += 1
