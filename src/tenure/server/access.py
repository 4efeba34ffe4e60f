"""Who asks, and whether they may: the one place where a request is let in.

A route names the scope it needs; a queue is judged when the route knows which one it is about.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import Depends, Request, Security
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from tenure.admin import EVERY_QUEUE, By, Grant, Scope, Selector, allows
from tenure.server.problems import Problem

if TYPE_CHECKING:
    from tenure.server.keys import Keys

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
            raise Problem(
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
    keys: Keys = request.app.state.keys
    if sent is None:
        raise Problem("unauthenticated", "send an access token as Authorization: Bearer …")
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
        raise Problem(
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
