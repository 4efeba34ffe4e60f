"""Sees past every partition when each lease ends, by the database's own row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from proof.poller import Looking

if TYPE_CHECKING:
    from datetime import datetime

    import psycopg

Period = tuple[int, int]
_EVERY = 0.15
_RUNNING = "SELECT id, token, lease_expires_at FROM tenure.job WHERE state = 'running'"


class Witness(Looking):
    """Looks several times per second, and keeps the last end of each lease."""

    def __init__(self, url: str) -> None:
        super().__init__(url, self._see, every=_EVERY)
        self.ends: dict[Period, datetime] = {}

    def _see(self, connection: psycopg.Connection[Any]) -> None:
        for job, token, ends_at in connection.execute(_RUNNING):
            self.ends[job, token] = ends_at
