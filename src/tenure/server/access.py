"""Who asks, and whether they may: the one place where a request is let in.

A route names the scope it needs; a queue is judged when the route knows which one it is about.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import Depends, Request, Security
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from tenure.admin import EVERY_QUEUE, By, Grant, Scope, allows
from tenure.server.problems import Problem

if TYPE_CHECKING:
    from tenure.server.keys import Keys

_bearer = HTTPBearer(auto_error=False, description="An access token: `tenure token create`.")


@dataclass(frozen=True, slots=True)
class Caller:
    """Whoever has sent an access token that is let in, and what it allows."""

    id: int
    name: str
    grant: Grant

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

    def by(self, reason: str | None) -> By:
        """Who it is in the audit."""
        return By(f"token:{self.id}:{self.name}", "http", reason)


async def caller(
    request: Request,
    sent: Annotated[HTTPAuthorizationCredentials | None, Security(_bearer)],
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
        if scope not in asking.grant.scopes and Scope.ADMIN not in asking.grant.scopes:
            raise Problem(
                "forbidden", f"the access token needs the scope {scope}; ask for one that has it"
            )
        return asking

    return let_in


def _needing(scope: Scope) -> Any:
    return Depends(needs(scope))


Anybody = Annotated[Caller, Depends(caller)]
Enqueuer = Annotated[Caller, _needing(Scope.ENQUEUE)]
Worker = Annotated[Caller, _needing(Scope.WORK)]
Reader = Annotated[Caller, _needing(Scope.READ)]
Operator = Annotated[Caller, _needing(Scope.OPERATE)]
Administrator = Annotated[Caller, _needing(Scope.ADMIN)]
