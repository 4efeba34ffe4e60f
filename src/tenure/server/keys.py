"""Access tokens as requests bring them: asked for once in a while, not for every request."""

import asyncio
import hashlib
from collections import OrderedDict
from contextlib import suppress
from time import monotonic

from tenure.admin import Admin, TokenRow
from tenure.errors import StoreError

# So long a token that was revoked may still be let in, by a server that has seen it just before.
FRESH = 2.0
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
        name = hashlib.sha256(secret.encode(errors="replace")).digest()
        seen_at, row = self._known.get(name, (0.0, None))
        if row is None or monotonic() - seen_at > FRESH:
            self._known.pop(name, None)
            row = await self._tokens.aauthenticate(secret)
            self._known[name] = monotonic(), row
            if len(self._known) > _MOST:
                self._known.popitem(last=False)
        self._used.add(row.id)
        return row

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
