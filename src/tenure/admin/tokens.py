"""Access token commands, and authentication with a token."""

import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from tenure._model.access import NewToken, TokenRow, TokenState
from tenure._model.audit import By
from tenure._rules import access
from tenure._rules import access as rules
from tenure._rules import idempotency as numbering
from tenure._rules.quotas import TOKEN_QUOTAS, check_quotas
from tenure._store.port import Store
from tenure._store.steps import Op
from tenure.admin._commands import AdminCommand, AsyncTwin, CommandGroup, check_page_size
from tenure.config import LONGEST_WAIT, duration
from tenure.errors import InvalidValue, TokenRefused
from tenure.task import Seconds

# How long a new token lasts, unless its creator says otherwise.
LIFETIME = timedelta(days=90)
_REFUSALS = {
    TokenState.EXPIRED: "the access token has expired; create a new one with tenure token create",
    TokenState.REVOKED: "the access token was revoked; create a new one with tenure token create",
}


@dataclass(frozen=True, slots=True)
class CreatedToken:
    """A new access token.

    Attributes:
        secret: The secret. Tenure doesn't store it, so copy it now.
        token: The token's row.
    """

    secret: str
    token: TokenRow

    def __repr__(self) -> str:
        return f"CreatedToken({self.token.hint}…, {self.token!r})"


def active_token(store: Store, digest: str) -> Op[TokenRow]:
    """Find the active token with this digest, or raise TokenRefused."""
    row = yield from store.tokens.find(digest)
    if row is None:
        raise TokenRefused(
            "the access token is unknown; check that it belongs to this installation", "unknown"
        )
    if row.state is not TokenState.ACTIVE:
        raise TokenRefused(_REFUSALS[row.state], str(row.state))
    return row


class Tokens(CommandGroup):
    """Access token commands: `app.admin.tokens`."""

    @AdminCommand
    def create(
        self,
        name: str,
        by: By,
        *,
        scopes: Iterable[str] = (),
        role: str | None = None,
        queues: Iterable[str] = ("*",),
        tasks: Iterable[str] = ("*",),
        quotas: Mapping[str, float] | None = None,
        expires_in: Seconds | None = LIFETIME,
        parent: int | None = None,
    ) -> Op[CreatedToken]:
        """Create an access token. The secret is returned only once.

        Args:
            name: A name for the token.
            by: Who is doing this and why, for the audit log.
            scopes: What the token allows, such as `"read"`.
            role: A bundle of scopes to add: `"viewer"`, `"operator"` or `"admin"`.
            queues: Patterns for the queues it covers (default: all queues).
            tasks: Patterns for the tasks it may enqueue (default: all tasks).
            quotas: Its quotas by name, such as `{"live_jobs": 1000}` (default: none).
            expires_in: How long the token is valid (default: 90 days). `None` means forever.
            parent: The id of the token that creates this one. The new token expires no later than
                its parent, and is revoked with it.

        Returns:
            The token and its secret.

        Raises:
            InvalidValue: A scope or role does not exist, or an argument is out of range.
            TokenRefused: The parent is not active.
        """
        named = [*rules.listed(scopes, "scopes"), *(rules.role_scopes(role) if role else ())]
        grant = access.grant(named, queues, tasks)
        limits = check_quotas(quotas or {}, TOKEN_QUOTAS)
        lasts = None if expires_in is None else duration(expires_in, "expires_in")
        if lasts is not None and not timedelta(0) < lasts <= LONGEST_WAIT:
            raise InvalidValue(
                f"expires_in must be positive and at most {LONGEST_WAIT.days:,} days, got {lasts}"
            )
        secret = rules.secret(secrets.token_bytes(rules.ENTROPY))
        new = NewToken(name, rules.hint(secret), rules.digest(secret), grant, lasts, limits, parent)
        row = yield from self._store.tokens.create(new, by)
        return CreatedToken(secret, row)

    acreate: Final = AsyncTwin(create)

    @AdminCommand
    def authenticate(self, secret: str) -> Op[TokenRow]:
        """Find the active token for a secret. A mistyped secret is rejected without a query.

        Args:
            secret: The token's secret.

        Returns:
            The token's row.

        Raises:
            TokenRefused: The token is malformed, unknown, expired or revoked.
        """
        # Checked before there is a connection: the caller may be anyone.
        if not rules.is_whole(secret):
            raise TokenRefused(
                "the access token is malformed; copy it completely",
                "malformed",
            )
        return active_token(self._store, rules.digest(secret))

    aauthenticate: Final = AsyncTwin(authenticate)

    @AdminCommand
    def touch(self, ids: Sequence[int]) -> Op[int]:
        """Record that tokens were used. Call it about once a minute, not on every request.

        Args:
            ids: The ids of the tokens used since the last call.

        Returns:
            How many tokens had no recorded use within the last minute.
        """
        return self._store.tokens.touch(sorted(set(ids)))

    atouch: Final = AsyncTwin(touch)

    @AdminCommand
    def list(
        self,
        *,
        before: int | None = None,
        count: int = 100,
        active: bool = False,
        parent: int | None = None,
    ) -> Op[Sequence[TokenRow]]:
        """List access tokens, newest first.

        Args:
            before: Only tokens with a smaller id, to get the next page.
            count: The page size, 1 to 1,000 (default: 100).
            active: Only active tokens (default: False).
            parent: Only tokens that descend from this one, at any depth (default: all).

        Returns:
            The tokens.

        Raises:
            InvalidValue: `count` is out of range.
        """
        check_page_size(count)
        return self._store.tokens.list(before=before, count=count, active=active, parent=parent)

    alist: Final = AsyncTwin(list)  # noqa: A003 - the command above

    @AdminCommand
    def quota(self, token_id: int | str, quotas: Mapping[str, float], by: By) -> Op[bool]:
        """Replace an access token's quotas. The server enforces them within seconds.

        Args:
            token_id: The token's id, as a number or a string.
            quotas: The quotas by name. A missing quota gets its default, or no limit if it has
                no default.
            by: Who is doing this and why, for the audit log.

        Returns:
            False if the token does not exist.

        Raises:
            InvalidValue: A quota does not exist, or is out of range.
        """
        [number] = numbering.numbers([token_id], "token")
        return self._store.tokens.set_quotas(number, quotas, by)

    aquota: Final = AsyncTwin(quota)

    @AdminCommand
    def revoke(
        self,
        ids: Sequence[int | str],
        by: By,
        *,
        children: bool = True,
        parent: int | None = None,
    ) -> Op[Sequence[bool]]:
        """Permanently revoke access tokens. Their dashboard sessions end too.

        Args:
            ids: Token ids, as numbers or strings.
            by: Who is doing this and why, for the audit log.
            children: Also revoke the tokens that they created (default: True).
            parent: Revoke only tokens that this one created (default: any).

        Returns:
            False for each token that doesn't exist or was already revoked.
        """
        return self._store.tokens.revoke(
            numbering.numbers(ids, "token"), by, children=children, parent=parent
        )

    arevoke: Final = AsyncTwin(revoke)
