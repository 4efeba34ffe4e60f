"""Dashboard sessions: sign in, authenticate, list and revoke.

A session belongs to an access token, or to a user who was signed in by another system. `provider`
says how the user signed in: `token`, `link` or `proxy`. To add a provider, call `open_for_user`.
"""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from tenure._model.access import Grant, NewSession, SessionRow, SessionState, TokenRow
from tenure._model.audit import By
from tenure._rules import access as rules
from tenure._rules import idempotency as numbering
from tenure._store.steps import Op, atomically
from tenure.admin._commands import AdminCommand, AsyncTwin, CommandGroup, check_page_size
from tenure.admin.tokens import active_token
from tenure.config import LONGEST_WAIT, duration
from tenure.errors import InvalidValue, TokenRefused
from tenure.task import Seconds

CODE_LIFETIME = timedelta(seconds=60)
IDLE = timedelta(hours=1)
LIFETIME = timedelta(hours=12)
_MOST_AGENT = 300
_AGAIN = "sign in again"


@dataclass(frozen=True, slots=True)
class SessionTerms:
    """How long a session lasts, and which browser it belongs to.

    Attributes:
        idle: How long the session lasts without use (default: 1 h).
        lifetime: How long the session can last in total (default: 12 h).
        address: The client's address.
        user_agent: The browser's user agent string.
    """

    idle: timedelta = IDLE
    lifetime: timedelta = LIFETIME
    address: str | None = None
    user_agent: str | None = None


@dataclass(frozen=True, slots=True)
class OpenedSession:
    """A new dashboard session.

    Attributes:
        secret: The opaque id for the cookie. Tenure stores only its hash.
        session: The session's row.
    """

    secret: str
    session: SessionRow

    def __repr__(self) -> str:
        return f"OpenedSession({self.session!r})"


@dataclass(frozen=True, slots=True)
class SignInCode:
    """A one-time code that signs in a browser.

    Attributes:
        secret: The code. Tenure stores only its hash.
        expires_at: When it expires.
    """

    secret: str
    expires_at: datetime

    @staticmethod
    def matches(secret: str) -> bool:
        """Return whether a text looks like a sign-in code. If not, it may be an access token.

        Args:
            secret: The text.

        Returns:
            True for a code, whether or not it is valid.
        """
        return secret.startswith(rules.CODE_PREFIX)

    def __repr__(self) -> str:
        return f"SignInCode(expires_at={self.expires_at!r})"


class Sessions(CommandGroup):
    """Dashboard session commands: `app.admin.sessions`."""

    @AdminCommand
    def create_code(
        self, token_id: int, by: By, *, expires_in: Seconds = CODE_LIFETIME
    ) -> Op[SignInCode]:
        """Create a one-time code that signs in a browser with this access token.

        Args:
            token_id: The token's id.
            by: Who is doing this and why, for the audit log.
            expires_in: How long the code is valid (default: 60 s).

        Returns:
            The code, for the link `/sign-in#CODE`.

        Raises:
            InvalidValue: `expires_in` is out of range.
            TokenRefused: The token does not exist, or is not active.
        """
        lasts = duration(expires_in, "expires_in")
        if not timedelta(0) < lasts <= LONGEST_WAIT:
            raise InvalidValue(
                f"expires_in must be positive and at most {LONGEST_WAIT.days:,} days, got {lasts}"
            )
        secret = rules.CODE_PREFIX + secrets.token_urlsafe(rules.ENTROPY)
        [number] = numbering.numbers([token_id], "token")
        expires_at = yield from self._store.sign_ins.create_code(
            rules.digest(secret), number, lasts, by
        )
        if expires_at is None:
            raise TokenRefused(
                f"token {number} is not active; list the active ones: tenure token list --active",
                "unknown",
            )
        return SignInCode(secret, expires_at)

    acreate_code: Final = AsyncTwin(create_code)

    @AdminCommand
    def sign_in(self, secret: str, terms: SessionTerms) -> Op[OpenedSession]:
        """Open a session for an access token, or for a one-time code.

        Args:
            secret: The token's secret, or the code.
            terms: How long the session lasts, and which browser it belongs to.

        Returns:
            The session, with the id for the cookie.

        Raises:
            TokenRefused: The token or the code is not valid.
        """
        return atomically(self._sign_in(secret, terms))

    asign_in: Final = AsyncTwin(sign_in)

    def _sign_in(self, secret: str, terms: SessionTerms) -> Op[OpenedSession]:
        if SignInCode.matches(secret):
            digest = yield from self._store.sign_ins.use_code(rules.digest(secret))
            if digest is None:
                raise TokenRefused(
                    "the sign-in link is not valid: it works once, within a minute; create a new "
                    "one with tenure session link",
                    "unknown",
                )
            token, provider = (yield from active_token(self._store, digest)), "link"
        else:
            token, provider = (yield from self._token(secret)), "token"
        actor = f"token:{token.id}:{token.name}"
        return (yield from self._open(token.name, provider, token.grant, actor, terms, token.id))

    def _token(self, secret: str) -> Op[TokenRow]:
        if not rules.is_whole(secret):
            raise TokenRefused("the access token is malformed; copy it completely", "malformed")
        return (yield from active_token(self._store, rules.digest(secret)))

    @AdminCommand
    def open_for_user(
        self, name: str, provider: str, grant: Grant, terms: SessionTerms
    ) -> Op[OpenedSession]:
        """Open a session for a user who was signed in by another system.

        Args:
            name: The user's name, for the audit log.
            provider: How the user was signed in, such as `"proxy"`.
            grant: What the user may do.
            terms: How long the session lasts, and which browser it belongs to.

        Returns:
            The session, with the id for the cookie.
        """
        return self._open(name, provider, grant, f"user:{name}", terms, None)

    aopen_for_user: Final = AsyncTwin(open_for_user)

    def _open(
        self,
        name: str,
        provider: str,
        grant: Grant,
        actor: str,
        terms: SessionTerms,
        token_id: int | None,
    ) -> Op[OpenedSession]:
        secret = rules.SESSION_PREFIX + secrets.token_urlsafe(rules.ENTROPY)
        new = NewSession(
            rules.digest(secret),
            name,
            provider,
            grant,
            terms.lifetime,
            terms.idle,
            token_id,
            terms.address,
            None if terms.user_agent is None else terms.user_agent[:_MOST_AGENT],
        )
        row = yield from self._store.sign_ins.open(new, By(actor, "page", address=terms.address))
        return OpenedSession(secret, row)

    @AdminCommand
    def authenticate(self, secret: str) -> Op[tuple[SessionRow, TokenRow | None]]:
        """Find the active session for a cookie's id, and its access token.

        Args:
            secret: The session's id, as in the cookie.

        Returns:
            The session, and its token if it has one.

        Raises:
            TokenRefused: The session is unknown or has ended.
        """
        if not secret.startswith(rules.SESSION_PREFIX):
            raise TokenRefused(f"the session does not exist; {_AGAIN}", "malformed")
        found = yield from self._store.sign_ins.find(rules.digest(secret))
        if found is None:
            raise TokenRefused(f"the session does not exist; {_AGAIN}", "unknown")
        session, digest = found
        if session.state is not SessionState.ACTIVE:
            raise TokenRefused(f"the session is over; {_AGAIN}", str(session.state))
        if digest is None:
            return session, None
        return session, (yield from active_token(self._store, digest))

    aauthenticate: Final = AsyncTwin(authenticate)

    @AdminCommand
    def touch(self, session_id: int) -> Op[bool]:
        """Record that a session is in use, so that it doesn't time out.

        Args:
            session_id: The session's id.

        Returns:
            False if the session has ended.
        """
        return self._store.sign_ins.touch(session_id)

    atouch: Final = AsyncTwin(touch)

    @AdminCommand
    def list(
        self,
        *,
        before: int | None = None,
        count: int = 100,
        active: bool = False,
        token: int | None = None,
        session: int | None = None,
    ) -> Op[Sequence[SessionRow]]:
        """List dashboard sessions, newest first.

        Args:
            before: Only sessions with a smaller id, to get the next page.
            count: The page size, 1 to 1,000 (default: 100).
            active: Only active sessions (default: False).
            token: Only sessions of this access token (default: all).
            session: Only this session, in addition to those of `token` (default: all).

        Returns:
            The sessions.

        Raises:
            InvalidValue: `count` is out of range.
        """
        check_page_size(count)
        return self._store.sign_ins.list(
            before=before, count=count, active=active, token=token, session=session
        )

    alist: Final = AsyncTwin(list)  # noqa: A003 - the command above

    @AdminCommand
    def revoke(
        self, ids: Sequence[int | str], by: By, *, token: int | None = None
    ) -> Op[Sequence[bool]]:
        """End dashboard sessions.

        Args:
            ids: Session ids, as numbers or strings.
            by: Who is doing this and why, for the audit log.
            token: End only sessions of this access token (default: any).

        Returns:
            False for each session that doesn't exist or has already ended.
        """
        numbers = numbering.numbers(ids, "session")
        return self._store.sign_ins.end(numbers, by, action="session.revoke", token=token)

    arevoke: Final = AsyncTwin(revoke)

    @AdminCommand
    def sign_out(self, session_id: int, by: By) -> Op[bool]:
        """End a session because its user signed out.

        Args:
            session_id: The session's id.
            by: The user, for the audit log.

        Returns:
            False if the session had already ended.
        """
        ended = yield from self._store.sign_ins.end([session_id], by, action="session.sign_out")
        return ended[0]

    asign_out: Final = AsyncTwin(sign_out)
