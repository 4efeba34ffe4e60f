"""Access tokens, and the answers to requests with an idempotency key."""

from collections.abc import Sequence

from tenure._model.access import Grant, NewToken, Scope, TokenRow, TokenState
from tenure._model.audit import By
from tenure._model.ids import Json
from tenure._rules import access
from tenure._rules.payload import check_key
from tenure._store.postgres.rows import LAST_ID
from tenure._store.postgres.statements import Jsonb, QueryBase
from tenure._store.steps import Op, Row, atomic, atomically
from tenure.config import DEFAULTS
from tenure.errors import IdempotencyConflict


class TokenQueries(QueryBase):
    """The part of the store that knows who may come in, and what they were answered."""

    def create(self, new: NewToken, by: By) -> Op[TokenRow]:
        """Make an access token known by the digest of its secret."""
        check_key(new.name, "the token's name")
        return (yield from atomically(self._create_token(new, by)))

    def _create_token(self, new: NewToken, by: By) -> Op[TokenRow]:
        rows = yield self._query(
            "create_token",
            name=new.name,
            hint=new.hint,
            hash=new.digest,
            scopes=list(new.grant.scopes),
            queues=list(new.grant.queues),
            created_by=by.actor,
            expires_in=new.expires_in,
        )
        row = _token(rows[0])
        after = {
            "name": row.name,
            "hint": row.hint,
            "scopes": list(row.grant.scopes),
            "queues": list(row.grant.queues),
            "expires_at": None if row.expires_at is None else row.expires_at.isoformat(),
        }
        yield from self._audit(by, "token.create", [f"token:{row.id}"], after=after)
        return row

    def find(self, digest: str) -> Op[TokenRow | None]:
        """The access token whose secret has this digest, in whatever state, or None."""
        rows = yield self._query("find_token", hash=digest)
        if not rows or not access.same(rows[0]["digest"], digest):
            return None
        return _token({name: value for name, value in rows[0].items() if name != "digest"})

    def touch(self, ids: Sequence[int]) -> Op[int]:
        """Note that access tokens were used, each at most once a minute; never waits."""
        if not ids:
            return 0
        return len((yield self._query("touch_tokens", ids=list(ids))))

    def list(
        self, *, before: int | None = None, count: int = 100, active: bool = False
    ) -> Op[Sequence[TokenRow]]:
        """Access tokens, newest first, below an id; the active ones alone, if so asked."""
        last = LAST_ID if before is None else before
        rows = yield self._query("list_tokens", before=last, count=count, active=active)
        return [_token(row) for row in rows]

    @atomic
    def revoke(self, ids: Sequence[int], by: By) -> Op[Sequence[bool]]:
        """Let access tokens in no more; False for one that is not there, or was revoked before."""
        rows = yield self._query("revoke_tokens", ids=list(ids), revoked_by=by.actor)
        done = {row["id"] for row in rows}
        targets = [f"token:{token_id}" for token_id in ids if token_id in done]
        yield from self._audit(by, "token.revoke", targets)
        return [token_id in done for token_id in ids]

    def once(self, actor: str, key: str, digest: str, op: Op[Json]) -> Op[tuple[Json, bool]]:
        """Perform an operation once for an actor's idempotency key, in one transaction with its
        answer, which must be JSON. The same digest again within a day has the first answer, and
        True; another one is an IdempotencyConflict. Two at once: the second waits."""
        check_key(actor, "the actor")
        check_key(key, "the idempotency key")
        return (yield from atomically(self._once(actor, key, digest, op)))

    def _once(self, actor: str, key: str, digest: str, op: Op[Json]) -> Op[tuple[Json, bool]]:
        rows = yield self._query(
            "lock_idempotency_key", actor=actor, key=key, digest=digest, keep=DEFAULTS.keep_answers
        )
        first = rows[0]
        if first["digest"] != digest:
            raise IdempotencyConflict(
                "the idempotency key was used within the last day for another request; take a new "
                "key, or send what was sent with it"
            )
        if first["answer"] is not None:
            return first["answer"], True
        answer = yield from op
        yield self._query("store_response", actor=actor, key=key, answer=Jsonb(answer))
        return answer, False


def _token(row: Row) -> TokenRow:
    fields = {name: value for name, value in row.items() if name not in ("scopes", "queues")}
    grant = Grant(tuple(Scope(word) for word in row["scopes"]), tuple(row["queues"]))
    return TokenRow(**fields | {"state": TokenState(row["state"])}, grant=grant)
