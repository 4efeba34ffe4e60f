"""Audit rows for events that change nothing: failed authentication, payload reads and exports.

The rows are collected in memory and written about once a second. No request waits for them, and a
flood of requests doesn't become a flood of rows. If the server is killed, the last second is lost.
"""

import asyncio
import logging
from collections import OrderedDict
from contextlib import suppress
from time import monotonic

from tenure.admin import Admin, By
from tenure.errors import StoreError

log: logging.Logger = logging.getLogger("tenure")
EVERY = 1.0
# Write one row per address and minute for up to this many addresses. The rest share one row.
FAILURES_EVERY = 60.0
MOST_ADDRESSES = 100
# A page that refreshes itself reads the same job over and over, so record that only this often.
READS_EVERY = 900.0
_MOST_READS = 10_000
_MOST_WAITING = 1000


class AccessLog:
    """Collects and writes the rows. Lives on a single event loop."""

    def __init__(self, admin: Admin, *, name: str) -> None:
        self._audit = admin.audit
        self._target = f"server:{name}"
        self._failed: dict[str | None, int] = {}
        self._written_at: dict[str | None, float] = {}
        self._seen: OrderedDict[tuple[str, str, str | None], float] = OrderedDict()
        self._waiting: list[tuple[By, str, str]] = []

    def failed(self, address: str | None) -> None:
        """Count a failed authentication."""
        if address not in self._failed and len(self._failed) >= MOST_ADDRESSES:
            address = None
        self._failed[address] = self._failed.get(address, 0) + 1

    def read(self, by: By, target: str) -> None:
        """Record that an actor read a payload, at most once per target every 15 minutes."""
        key, now = (by.actor, target, by.address), monotonic()
        if now - self._seen.get(key, -READS_EVERY) < READS_EVERY:
            return
        self._seen.pop(key, None)
        self._seen[key] = now
        if len(self._seen) > _MOST_READS:
            self._seen.popitem(last=False)
        self._note(by, "payload.read", target)

    def export(self, by: By, target: str) -> None:
        """Note that an actor exports a list."""
        self._note(by, "export", target)

    def _note(self, by: By, action: str, target: str) -> None:
        # The spaces are needed because text right after "token:" looks like a secret and would be
        # redacted.
        actor = by.actor.replace(":", " ")
        log.info("server: %s by %s, target=%s address=%s", action, actor, target, by.address)
        if len(self._waiting) < _MOST_WAITING:
            self._waiting.append((by, action, target))

    async def flush(self) -> None:
        """Write what is due."""
        waiting, self._waiting = self._waiting, []
        groups: dict[tuple[By, str], list[str]] = {}
        for by, action, target in waiting:
            groups.setdefault((by, action), []).append(target)
        for (by, action), targets in groups.items():
            await self._audit.arecord(by, action, targets)
        now = monotonic()
        for address, count in list(self._failed.items()):
            if now - self._written_at.get(address, -FAILURES_EVERY) < FAILURES_EVERY:
                continue
            del self._failed[address]
            self._written_at[address] = now
            log.warning("server: authentication failed, address=%s count=%d", address, count)
            by = By("anonymous", "server", address=address)
            await self._audit.arecord(
                by, "authentication.failed", [self._target], after={"count": count}
            )
        if len(self._written_at) > _MOST_READS:
            self._written_at.clear()

    async def flush_forever(self) -> None:
        """Write rows every second, and once more at shutdown. Each round logs at most one error."""
        try:
            while True:
                await asyncio.sleep(EVERY)
                try:
                    await self.flush()
                except StoreError as error:
                    log.warning("server: audit rows of reads were not written: %s", error)
        finally:
            with suppress(StoreError, TimeoutError):
                async with asyncio.timeout(2):
                    await self.flush()
