"""Dashboard sessions, and codes that sign a browser in once."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from tenure._model.access import Grant, NewSession, Scope, SessionRow, SessionState
from tenure._model.audit import By
from tenure._rules import access
from tenure._store.postgres.rows import LAST_ID
from tenure._store.postgres.statements import QueryBase
from tenure._store.steps import Op, Row, atomic


class SignInQueries(QueryBase):
    @atomic
    def open(self, new: NewSession, by: By) -> Op[SessionRow]:
        """Store a session. A session without a token keeps its own grant."""
        own = new.token_id is None
        rows = yield self._query(
            "open_session",
            hash=new.digest,
            name=new.name,
            provider=new.provider,
            token=new.token_id,
            scopes=list(new.grant.scopes) if own else None,
            queues=list(new.grant.queues) if own else None,
            lifetime=new.lifetime,
            idle=new.idle,
            address=new.address,
            agent=new.user_agent,
        )
        granted = {"scopes": new.grant.scopes, "queues": new.grant.queues}
        row = _session({**rows[0], **granted})
        after = {"provider": row.provider, "user_agent": row.user_agent}
        yield from self._audit(by, "session.sign_in", [f"session:{row.id}"], after=after)
        return row

    def find(self, digest: str) -> Op[tuple[SessionRow, str | None] | None]:
        """Return the session with this digest, in any state, and its token's digest."""
        rows = yield self._query("find_session", hash=digest)
        if not rows or not access.same(rows[0]["digest"], digest):
            return None
        row = dict(rows[0])
        token_digest = row.pop("token_digest")
        del row["digest"]
        return _session(row), token_digest

    def touch(self, session_id: int) -> Op[bool]:
        """Record that a session is in use. Return False if it has ended."""
        return bool((yield self._query("touch_session", id=session_id)))

    def list(
        self,
        *,
        before: int | None = None,
        count: int = 100,
        active: bool = False,
        token: int | None = None,
        session: int | None = None,
    ) -> Op[Sequence[SessionRow]]:
        rows = yield self._query(
            "list_sessions",
            before=LAST_ID if before is None else before,
            count=count,
            active=active,
            token=token,
            session=session,
        )
        return [_session(row) for row in rows]

    @atomic
    def end(
        self, ids: Sequence[int], by: By, *, action: str, token: int | None = None
    ) -> Op[Sequence[bool]]:
        """End sessions. Return False for each one that is unknown or has already ended."""
        rows = yield self._query("end_sessions", ids=list(ids), ended_by=by.actor, token=token)
        done = {row["id"] for row in rows}
        targets = [f"session:{session_id}" for session_id in ids if session_id in done]
        yield from self._audit(by, action, targets)
        return [session_id in done for session_id in ids]

    @atomic
    def create_code(
        self, digest: str, token: int, lifetime: timedelta, by: By
    ) -> Op[datetime | None]:
        """Store a one-time code. Return when it expires, or None if the token isn't active."""
        rows = yield self._query("create_code", hash=digest, token=token, lifetime=lifetime)
        if not rows:
            return None
        yield from self._audit(by, "session.link", [f"token:{token}"])
        expires_at: datetime = rows[0]["expires_at"]
        return expires_at

    def use_code(self, digest: str) -> Op[str | None]:
        """Use up a one-time code. Return its token's digest, or None if the code isn't valid."""
        rows = yield self._query("use_code", hash=digest)
        return rows[0]["token_digest"] if rows else None


def _session(row: Row) -> SessionRow:
    fields = {name: value for name, value in row.items() if name not in ("scopes", "queues")}
    grant = Grant(tuple(Scope(word) for word in row["scopes"]), tuple(row["queues"]))
    return SessionRow(**fields | {"state": SessionState(row["state"])}, grant=grant)
