"""Authentication: access tokens, scopes, and the token cache.

Each route declares the scope it needs. The route checks access to the queue itself, once it knows
which queue is involved.
"""

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from random import random
from time import monotonic
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from fastapi import Depends, Request, Security
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from tenure.admin import Admin, By, allows, allows_task
from tenure.admin.tokens import Tokens
from tenure.errors import StoreError, TokenRefused
from tenure.server.front import address_of
from tenure.server.problems import ProblemError
from tenure.server.strangers import TRIES, TRIES_PER_SECOND, Strangers
from tenure.server.throttle import Buckets
from tenure.types import EVERY_QUEUE, Grant, KnownToken, Scope, Selector, TokenRow

V = TypeVar("V")
if TYPE_CHECKING:
    from tenure.server.access_log import AccessLog

# How many seconds a server may keep accepting a recently seen token after it was revoked.
FRESH = 2.0
# How long a scraper's token stays accepted while the database is down.
REMEMBERED = 3600.0
# How long a refused token is refused again without a query.
REFUSED_FOR = 10.0
# How long a client that was refused too often has to wait, on average.
SLOWED = 1.0
_MOST = 10_000
_NOTE_EVERY = 60.0


class TokenCache:
    """A cache of access tokens, keyed by a digest of their secrets.

    Clients with made-up tokens can't delay others. Refusals are cached, and concurrent requests
    with the same token share one query. Tokens that haven't been seen before are looked up over
    separate connections.

    Args:
        strangers: Looks up tokens that haven't been seen before.
        known: Looks up tokens that have been valid before.
    """

    def __init__(self, strangers: Strangers, known: Admin) -> None:
        self._strangers = strangers
        self._tokens = known.tokens
        self._known: OrderedDict[bytes, tuple[float, TokenRow]] = OrderedDict()
        self._refused: OrderedDict[bytes, tuple[float, TokenRefused]] = OrderedDict()
        self._queries: dict[bytes, asyncio.Task[TokenRow]] = {}
        self._refusals = Buckets(burst=TRIES, per_second=TRIES_PER_SECOND)
        self._used: set[int] = set()

    async def find(self, secret: str, *, address: str = "") -> TokenRow:
        """Return the access token, or raise TokenRefused.

        `address` is the client's address. If it has often been refused, the refusal is delayed, so
        the client can't try again right away.
        """
        try:
            row = await self._find(secret, address)
        except (TokenRefused, ProblemError):
            if not self._refusals.take(address):
                # At different times: 300 that wake together would delay others.
                await asyncio.sleep(SLOWED * (0.5 + random()))  # noqa: S311 - spreads refusals
            raise
        self._used.add(row.id)
        return row

    async def _find(self, secret: str, address: str) -> TokenRow:
        name = _name(secret)
        seen_at, row = self._known.get(name, (0.0, None))
        if row is None or monotonic() - seen_at > FRESH:
            refused_at, refusal = self._refused.get(name, (0.0, None))
            if refusal is not None and monotonic() - refused_at <= REFUSED_FOR:
                raise TokenRefused(str(refusal), refusal.why)
            query = self._queries.get(name)
            if query is None:
                query = asyncio.create_task(self._look_up(name, secret, address))
                self._queries[name] = query
                query.add_done_callback(lambda done: self._finish(name, done))
            # If the client disconnects, the query continues, because others may be waiting for it.
            row = await asyncio.shield(query)
        return row

    def _finish(self, name: bytes, query: "asyncio.Task[TokenRow]") -> None:
        del self._queries[name]
        if not query.cancelled():
            query.exception()

    async def _look_up(self, name: bytes, secret: str, address: str) -> TokenRow:
        try:
            if name in self._known:
                row = await self._tokens.aauthenticate(secret)
            else:
                # Raises if it is malformed, which costs no try.
                query = Tokens.authenticate.describe(self._tokens, secret)
                row = await self._strangers.look_up(query, address=address, what="access tokens")
        except TokenRefused as error:
            self._known.pop(name, None)
            if error.why != "malformed":
                _keep(self._refused, name, (monotonic(), error))
            raise
        _keep(self._known, name, (monotonic(), row))
        return row

    def remembered(self, secret: str) -> TokenRow | None:
        """Return the access token if it was recently valid.

        Use it only where the caller can learn nothing more than that the database is down.
        """
        seen_at, row = self._known.get(_name(secret), (0.0, None))
        if row is None or monotonic() - seen_at > REMEMBERED:
            return None
        return None if row.expires_at and row.expires_at <= datetime.now(UTC) else row

    async def record_usage(self) -> None:
        """Record which tokens have been used since the last call."""
        used, self._used = self._used, set()
        if used:
            await self._tokens.atouch(sorted(used))

    async def record_usage_forever(self) -> None:
        """Record token usage once a minute. Ignore errors, because the next round tries again."""
        while True:
            await asyncio.sleep(_NOTE_EVERY)
            with suppress(StoreError):
                await self.record_usage()


def _keep(cache: OrderedDict[bytes, V], name: bytes, value: V) -> None:
    cache.pop(name, None)
    cache[name] = value
    if len(cache) > _MOST:
        cache.popitem(last=False)


def _name(secret: str) -> bytes:
    return hashlib.sha256(secret.encode(errors="replace")).digest()


bearer: HTTPBearer = HTTPBearer(
    auto_error=False,
    description="An access token. Create one: `tenure token create NAME --scope read`.",
)


@dataclass(frozen=True, slots=True)
class Caller:
    """The owner of a valid access token, and what the token allows.

    A user who was signed in by another system has no token. Their `id` is 0, and `actor` is their
    name.
    """

    id: int
    name: str
    grant: Grant
    source: str = "http"
    quotas: Mapping[str, float] = field(default_factory=dict)
    page_key: bytes = field(default=b"", repr=False)
    actor: str = ""
    address: str | None = None
    session: int | None = None
    access: "AccessLog | None" = field(default=None, compare=False, repr=False)

    @classmethod
    def of(cls, row: TokenRow, **more: Any) -> "Caller":
        """Return the owner of this token."""
        key = row.page_key.bytes if isinstance(row, KnownToken) else b""
        return cls(row.id, row.name, row.grant, quotas=row.quotas, page_key=key, **more)

    @property
    def holder(self) -> str:
        """The name that leases are held under."""
        return f"token:{self.id}"

    def may(self, scope: Scope, queue: str = EVERY_QUEUE) -> bool:
        """Whether the scope is granted for a queue, or for all queues."""
        return allows(self.grant, scope, queue)

    def must(self, scope: Scope, queue: str = EVERY_QUEUE) -> None:
        """Raise `forbidden` unless the scope is granted."""
        if not self.may(scope, queue):
            where = "all queues" if queue == EVERY_QUEUE else "this queue"
            raise ProblemError(
                "forbidden",
                f"your access token needs the scope {scope} for {where}. Use another token",
            )

    def must_task(self, task: str) -> None:
        """Raise `forbidden` unless the token may enqueue the task."""
        if not allows_task(self.grant, task):
            raise ProblemError(
                "forbidden", "your access token may not enqueue this task. Use another token"
            )

    @property
    def patterns(self) -> Sequence[str] | None:
        """Patterns for the queues that the caller may see in lists. None means all queues."""
        return None if EVERY_QUEUE in self.grant.queues else self.grant.queues

    def must_for(self, scope: Scope, selector: Selector) -> None:
        """Raise `forbidden` unless the scope is granted for each of the selector's queues, or for
        all queues.

        A selector that filters by payload also needs `payload:read`, because a match reveals
        something about the payload.
        """
        for queue in selector.queue or [EVERY_QUEUE] * selector.names_payload:
            self.must(scope, queue)
            if selector.names_payload:
                self.must(Scope.PAYLOAD_READ, queue)

    def by(self, reason: str | None) -> By:
        """Return the actor for the audit log."""
        actor = self.actor or f"token:{self.id}:{self.name}"
        return By(actor, self.source, reason, self.address)

    def reads_payload(self, target: str, queue: str) -> None:
        """If the caller is allowed to see the payload, record in the audit log that it did."""
        if self.access is not None and self.may(Scope.PAYLOAD_READ, queue):
            self.access.read(self.by(None), target)

    def exports(self, target: str) -> None:
        """Note in the audit log that the caller exports a list."""
        if self.access is not None:
            self.access.export(self.by(None), target)


async def caller(
    request: Request,
    sent: Annotated[HTTPAuthorizationCredentials | None, Security(bearer)],
) -> Caller:
    """Authenticate a request, or fail with 401."""
    keys: TokenCache = request.app.state.keys
    if sent is None:
        raise ProblemError(
            "unauthenticated", "send an access token in the header Authorization: Bearer …"
        )
    address = address_of(request.scope)
    row = await keys.find(sent.credentials, address=address or "")
    return Caller.of(row, address=address, access=request.app.state.access)


def needs(scope: Scope) -> Callable[..., Awaitable[Caller]]:
    """Require a scope for at least one queue."""

    async def check(known: Annotated[Caller, Depends(caller)]) -> Caller:
        return has(known, scope)

    return check


def has(known: Caller, scope: Scope) -> Caller:
    """Return the caller if it has the scope for at least one queue."""
    if scope not in known.grant.scopes and Scope.ADMIN not in known.grant.scopes:
        raise ProblemError(
            "forbidden", f"your access token needs the scope {scope}. Use another token"
        )
    return known


def _needing(scope: Scope) -> Any:
    # The scope appears only in the OpenAPI document.
    return Security(needs(scope), scopes=[scope.value])


Anybody = Annotated[Caller, Depends(caller)]
Enqueuer = Annotated[Caller, _needing(Scope.ENQUEUE)]
Worker = Annotated[Caller, _needing(Scope.WORK)]
Reader = Annotated[Caller, _needing(Scope.READ)]
Operator = Annotated[Caller, _needing(Scope.OPERATE)]
Administrator = Annotated[Caller, _needing(Scope.ADMIN)]
