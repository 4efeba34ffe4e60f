"""What an operator can see of access tokens, and do to them; and who is let in by one."""

import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from tenure._model.access import NewToken, TokenRow, TokenState
from tenure._model.audit import By
from tenure._rules import access
from tenure._rules import access as rules
from tenure._rules import idempotency as numbering
from tenure._store.steps import Op
from tenure.admin._commands import AdminCommand, AsyncTwin, CommandGroup, check_page_size
from tenure.config import LONGEST_WAIT, duration
from tenure.errors import InvalidValue, TokenRefused
from tenure.task import Seconds

_REFUSALS = {
    TokenState.EXPIRED: "the access token has expired; make a new one: tenure token create",
    TokenState.REVOKED: "the access token was revoked; ask for a new one, if that was not meant",
}


@dataclass(frozen=True, slots=True)
class CreatedToken:
    """A new access token. The secret is here and nowhere else: it is not stored."""

    secret: str
    token: TokenRow

    def __repr__(self) -> str:
        return f"CreatedToken({self.token.hint}…, {self.token!r})"


class Tokens(CommandGroup):
    """The verbs over access tokens: `app.admin.tokens`."""

    @AdminCommand
    def create(
        self,
        name: str,
        by: By,
        *,
        scopes: Iterable[str],
        queues: Iterable[str] = ("*",),
        expires_in: Seconds | None = None,
    ) -> Op[CreatedToken]:
        """Make an access token: each of the scopes, in each queue that a pattern matches. Its
        secret is told by this answer alone."""
        grant = access.grant(scopes, queues)
        lasts = None if expires_in is None else duration(expires_in, "expires_in")
        if lasts is not None and not timedelta(0) < lasts <= LONGEST_WAIT:
            raise InvalidValue(
                f"expires_in is {lasts}; it must be more than nothing, {LONGEST_WAIT.days:,} days "
                "is the most"
            )
        secret = rules.secret(secrets.token_bytes(rules.ENTROPY))
        new = NewToken(name, rules.hint(secret), rules.digest(secret), grant, lasts)
        row = yield from self._store.tokens.create(new, by)
        return CreatedToken(secret, row)

    acreate: Final = AsyncTwin(create)

    @AdminCommand
    def authenticate(self, secret: str) -> Op[TokenRow]:
        """The access token that a secret is of; TokenRefused unless it is active. What was
        mistyped is refused without a question to the database."""
        if not rules.is_whole(secret):
            raise TokenRefused(
                "this is no access token, or it was not copied whole; look at how it is passed on",
                "malformed",
            )
        row = yield from self._store.tokens.find(rules.digest(secret))
        if row is None:
            raise TokenRefused(
                "the access token is not known here; it is of another installation", "unknown"
            )
        if row.state is not TokenState.ACTIVE:
            raise TokenRefused(_REFUSALS[row.state], str(row.state))
        return row

    aauthenticate: Final = AsyncTwin(authenticate)

    @AdminCommand
    def touch(self, ids: Sequence[int]) -> Op[int]:
        """Note that access tokens were used; answers with how many had that not noted within the
        last minute. For those seen since the last call, about once a minute: not per request."""
        return self._store.tokens.touch(sorted(set(ids)))

    atouch: Final = AsyncTwin(touch)

    @AdminCommand
    def list(
        self, *, before: int | None = None, count: int = 100, active: bool = False
    ) -> Op[Sequence[TokenRow]]:
        """Access tokens, newest first, below an id; the active ones alone, if so asked."""
        check_page_size(count)
        return self._store.tokens.list(before=before, count=count, active=active)

    alist: Final = AsyncTwin(list)  # noqa: A003 - the verb above, by its name

    @AdminCommand
    def revoke(self, ids: Sequence[int | str], by: By) -> Op[Sequence[bool]]:
        """Let access tokens in no more, for good; False for one that is not there, or was revoked
        before."""
        return self._store.tokens.revoke(numbering.numbers(ids, "token"), by)

    arevoke: Final = AsyncTwin(revoke)
