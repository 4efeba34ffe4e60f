"""Bearer tokens, scopes, and the cache of tokens.

Who asks, and whether they may: the one place where a request is let in.

A route names the scope it needs; a queue is judged when the route knows which one it is about.
"""

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from time import monotonic
from typing import Annotated, Any

from fastapi import Depends, Request, Security
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from tenure.admin import Admin, By, allows
from tenure.errors import StoreError, TokenRefused
from tenure.server.problems import ProblemError
from tenure.types import EVERY_QUEUE, Grant, Scope, Selector, TokenRow

# So long a token that was revoked may still be let in, by a server that has seen it just before.
FRESH = 2.0
# And so long one that was let in is known to who scrapes while the database is away.
REMEMBERED = 3600.0
_MOST = 10_000
_NOTE_EVERY = 60.0


class TokenCache:
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

    async def record_usage(self) -> None:
        """Note which were used since the last time."""
        used, self._used = self._used, set()
        if used:
            await self._tokens.atouch(sorted(used))

    async def record_usage_forever(self) -> None:
        """Note it now and then, for ever; what cannot be noted is not worth an error."""
        while True:
            await asyncio.sleep(_NOTE_EVERY)
            with suppress(StoreError):
                await self.record_usage()


def _name(secret: str) -> bytes:
    return hashlib.sha256(secret.encode(errors="replace")).digest()


bearer: HTTPBearer = HTTPBearer(
    auto_error=False, description="An access token: `tenure token create`."
)


@dataclass(frozen=True, slots=True)
class Caller:
    """Whoever has sent an access token that is let in, and what it allows."""

    id: int
    name: str
    grant: Grant
    source: str = "http"

    @property
    def holder(self) -> str:
        """By which leases are told apart."""
        return f"token:{self.id}"

    def may(self, scope: Scope, queue: str = EVERY_QUEUE) -> bool:
        """Whether this may be done in the queue; without one, to the whole installation."""
        return allows(self.grant, scope, queue)

    def must(self, scope: Scope, queue: str = EVERY_QUEUE) -> None:
        """Refuse, unless it may."""
        if not self.may(scope, queue):
            where = "the whole installation" if queue == EVERY_QUEUE else "this queue"
            raise ProblemError(
                "forbidden",
                f"the access token needs the scope {scope} for {where}; ask for one that has it",
            )

    def must_for(self, scope: Scope, selector: Selector) -> None:
        """Refuse, unless it may be done to what a selector means: in each queue that it names, else
        in all; and unless payloads may be read there, if it asks about them. What it finds would
        tell what they are."""
        for queue in selector.queue or [EVERY_QUEUE] * selector.names_payload:
            self.must(scope, queue)
            if selector.names_payload:
                self.must(Scope.PAYLOAD_READ, queue)

    def by(self, reason: str | None) -> By:
        """Who it is in the audit."""
        return By(f"token:{self.id}:{self.name}", self.source, reason)


async def caller(
    request: Request,
    sent: Annotated[HTTPAuthorizationCredentials | None, Security(bearer)],
) -> Caller:
    """Whoever sends the request; 401 if that is nobody, or nobody who is let in."""
    keys: TokenCache = request.app.state.keys
    if sent is None:
        raise ProblemError("unauthenticated", "send an access token as Authorization: Bearer …")
    row = await keys.find(sent.credentials)
    return Caller(row.id, row.name, row.grant)


def needs(scope: Scope) -> Callable[..., Awaitable[Caller]]:
    """The caller, who has this scope for some queue at least."""

    async def let_in(asking: Annotated[Caller, Depends(caller)]) -> Caller:
        return has(asking, scope)

    return let_in


def has(asking: Caller, scope: Scope) -> Caller:
    """The caller, if it has this scope for some queue at least."""
    if scope not in asking.grant.scopes and Scope.ADMIN not in asking.grant.scopes:
        raise ProblemError(
            "forbidden", f"the access token needs the scope {scope}; ask for one that has it"
        )
    return asking


def _needing(scope: Scope) -> Any:
    # The scope is for the document alone.
    return Security(needs(scope), scopes=[scope.value])


Anybody = Annotated[Caller, Depends(caller)]
Enqueuer = Annotated[Caller, _needing(Scope.ENQUEUE)]
Worker = Annotated[Caller, _needing(Scope.WORK)]
Reader = Annotated[Caller, _needing(Scope.READ)]
Operator = Annotated[Caller, _needing(Scope.OPERATE)]
Administrator = Annotated[Caller, _needing(Scope.ADMIN)]
