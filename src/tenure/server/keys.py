"""Access tokens as requests bring them: asked for once in a while, not for every request."""

import asyncio
import hashlib
from collections import OrderedDict
from contextlib import suppress
from datetime import UTC, datetime
from time import monotonic

from tenure.admin import Admin, TokenRow
from tenure.errors import StoreError, TokenRefused

# So long a token that was revoked may still be let in, by a server that has seen it just before.
FRESH = 2.0
# And so long one that was let in is known to who scrapes while the database is away.
REMEMBERED = 3600.0
_MOST = 10_000
_NOTE_EVERY = 60.0


class Keys:
    """What is known of access tokens, by a digest of their secrets."""

    def __init__(self, admin: Admin) -> None:
        self._tokens = admin.tokens
        self._known: OrderedDict[bytes, tuple[float, TokenRow]] = OrderedDict()
        self._used: set[int] = set()

    async def find(self, secret: str) -> TokenRow:
        """The access token; TokenRefused unless it is let in."""
        name = _name(secret)
        seen_at, row = self._known.get(name, (0.0, None))
        if row is None or monotonic() - seen_at > FRESH:
            try:
                row = await self._tokens.aauthenticate(secret)
            except TokenRefused:
                self._known.pop(name, None)
                raise
            self._known.pop(name, None)
            self._known[name] = monotonic(), row
            if len(self._known) > _MOST:
                self._known.popitem(last=False)
        self._used.add(row.id)
        return row

    def remembered(self, secret: str) -> TokenRow | None:
        """The access token as it was when it was let in last, if that was lately: for who may be
        told that the database is away, and nothing else."""
        seen_at, row = self._known.get(_name(secret), (0.0, None))
        if row is None or monotonic() - seen_at > REMEMBERED:
            return None
        return None if row.expires_at and row.expires_at <= datetime.now(UTC) else row

    async def note(self) -> None:
        """Note which were used since the last time."""
        used, self._used = self._used, set()
        if used:
            await self._tokens.atouch(sorted(used))

    async def keep_noting(self) -> None:
        """Note it now and then, for ever; what cannot be noted is not worth an error."""
        while True:
            await asyncio.sleep(_NOTE_EVERY)
            with suppress(StoreError):
                await self.note()


def _name(secret: str) -> bytes:
    return hashlib.sha256(secret.encode(errors="replace")).digest()
