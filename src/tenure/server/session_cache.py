"""A cache of dashboard sessions, by a digest of the ids in their cookies."""

import hashlib
from collections import OrderedDict
from time import monotonic

from tenure.admin import Admin, Sessions
from tenure.errors import TokenRefused
from tenure.server.auth import FRESH
from tenure.server.strangers import Strangers
from tenure.types import SessionRow, TokenRow

_MOST = 10_000
# How often the use of a session is recorded, in seconds.
_TOUCH_EVERY = 60.0

SessionAndToken = tuple[SessionRow, TokenRow | None]


class SessionCache:
    """Looks up sessions and caches them. An ended session is refused within two seconds.

    Args:
        strangers: Looks up sessions that haven't been seen before.
        admin: Looks up the others.
    """

    def __init__(self, strangers: Strangers, admin: Admin) -> None:
        self._strangers = strangers
        self._sessions = admin.sessions
        self._known: OrderedDict[bytes, tuple[float, SessionAndToken]] = OrderedDict()
        self._touched: OrderedDict[int, float] = OrderedDict()

    async def find(self, secret: str, *, in_use: bool, address: str) -> SessionAndToken:
        """Return the session and its token, or raise TokenRefused.

        `in_use` is False for requests that the page makes on its own, which don't keep an idle
        session alive. `address` is the client's address, and each address has a limited number of
        tries.
        """
        name = _name(secret)
        seen_at, found = self._known.get(name, (0.0, None))
        if found is None or monotonic() - seen_at > FRESH:
            try:
                found = await self._look_up(name, secret, address)
            except TokenRefused:
                self._known.pop(name, None)
                raise
            self._known.pop(name, None)
            self._known[name] = monotonic(), found
            if len(self._known) > _MOST:
                self._known.popitem(last=False)
        if in_use:
            await self._touch(found[0])
        return found

    async def _look_up(self, name: bytes, secret: str, address: str) -> SessionAndToken:
        if name in self._known:
            return await self._sessions.aauthenticate(secret)
        query = Sessions.authenticate.describe(self._sessions, secret)
        return await self._strangers.look_up(query, address=address, what="sessions")

    def forget(self, secret: str) -> None:
        """Ask the database at the next request."""
        self._known.pop(_name(secret), None)

    async def _touch(self, session: SessionRow) -> None:
        idle = (session.ends_at - session.seen_at).total_seconds()
        every = min(_TOUCH_EVERY, idle / 10)
        now = monotonic()
        if now - self._touched.get(session.id, 0.0) < every:
            return
        self._touched[session.id] = now
        self._touched.move_to_end(session.id)
        if len(self._touched) > _MOST:
            self._touched.popitem(last=False)
        if not await self._sessions.atouch(session.id):
            raise TokenRefused("the session is over; sign in again", "ended")


def _name(secret: str) -> bytes:
    return hashlib.sha256(secret.encode(errors="replace")).digest()
