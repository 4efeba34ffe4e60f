"""Sees past every partition when each lease ends, by the database's own row."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Self

import psycopg

if TYPE_CHECKING:
    from datetime import datetime

_EVERY = 0.15
_RUNNING = "SELECT id, token, lease_expires_at FROM tenure.job WHERE state = 'running'"


class Witness:
    """A thread that looks several times per second, and keeps the last end of each lease."""

    def __init__(self, url: str) -> None:
        self.ends: dict[tuple[int, int], datetime] = {}
        self.looks = 0
        self._url = url
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="witness")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        with psycopg.connect(self._url, autocommit=True) as connection:
            while not self._over.wait(_EVERY):
                for job, token, ends_at in connection.execute(_RUNNING):
                    self.ends[job, token] = ends_at
                self.looks += 1
