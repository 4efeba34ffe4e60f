"""Access tokens, and the responses to requests with an idempotency key."""

from collections.abc import Mapping, Sequence
from dataclasses import fields

from tenure._model.access import Grant, KnownToken, NewToken, Scope, TokenRow, TokenState
from tenure._model.audit import By
from tenure._model.ids import Json
from tenure._rules import access
from tenure._rules.payload import check_key
from tenure._rules.quotas import TOKEN_QUOTAS, check_quotas
from tenure._store.postgres.rows import LAST_ID
from tenure._store.postgres.statements import Jsonb, QueryBase
from tenure._store.steps import Op, Row, atomic, atomically
from tenure.config import DEFAULTS
from tenure.errors import IdempotencyConflict, TokenRefused


class TokenQueries(QueryBase):
    def create(self, new: NewToken, by: By) -> Op[TokenRow]:
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
            tasks=list(new.grant.tasks),
            quotas=Jsonb(dict(new.quotas)),
            parent=new.parent,
        )
        if not rows:
            raise TokenRefused(
                "the access token creating this one was revoked or has expired; use another one",
                "revoked",
            )
        row = _token(rows[0])
        after = {
            "name": row.name,
            "hint": row.hint,
            "scopes": list(row.grant.scopes),
            "queues": list(row.grant.queues),
            "tasks": list(row.grant.tasks),
            "quotas": dict(row.quotas),
            "expires_at": None if row.expires_at is None else row.expires_at.isoformat(),
        }
        yield from self._audit(by, "token.create", [f"token:{row.id}"], after=after)
        return row

    def find(self, digest: str) -> Op[KnownToken | None]:
        """Return the access token with this digest, in any state, or None."""
        rows = yield self._query("find_token", hash=digest)
        if not rows or not access.same(rows[0]["digest"], digest):
            return None
        row = _token({k: v for k, v in rows[0].items() if k not in ("digest", "page_key")})
        known = {each.name: getattr(row, each.name) for each in fields(TokenRow)}
        return KnownToken(**known, page_key=rows[0]["page_key"])

    def touch(self, ids: Sequence[int]) -> Op[int]:
        """Record that access tokens were used, at most once a minute per token, without waiting."""
        if not ids:
            return 0
        return len((yield self._query("touch_tokens", ids=list(ids))))

    def list(
        self,
        *,
        before: int | None = None,
        count: int = 100,
        active: bool = False,
        parent: int | None = None,
    ) -> Op[Sequence[TokenRow]]:
        last = LAST_ID if before is None else before
        rows = yield self._query(
            "list_tokens", before=last, count=count, active=active, parent=parent
        )
        return [_token(row) for row in rows]

    @atomic
    def revoke(
        self, ids: Sequence[int], by: By, *, children: bool = True, parent: int | None = None
    ) -> Op[Sequence[bool]]:
        """Revoke access tokens. Return False for each one that is unknown or already revoked.

        With `children`, also revoke the tokens that they created. With `parent`, revoke only
        descendants of that token.
        """
        done: set[int] = set()
        # If a child's transaction commits while we wait for its parent's lock, only the next round
        # sees it.
        while rows := (
            yield self._query(
                "revoke_tokens",
                ids=list(ids),
                revoked_by=by.actor,
                children=children,
                parent=parent,
            )
        ):
            done |= {row["id"] for row in rows}
        requested = [token_id for token_id in ids if token_id in done]
        targets = [f"token:{token_id}" for token_id in [*requested, *sorted(done - set(requested))]]
        yield from self._audit(by, "token.revoke", targets)
        return [token_id in done for token_id in ids]

    @atomic
    def set_quotas(self, token_id: int, quotas: Mapping[str, float], by: By) -> Op[bool]:
        """Replace an access token's quotas; False if it doesn't exist."""
        known = check_quotas(quotas, TOKEN_QUOTAS)
        rows = yield self._query("set_token_quotas", id=token_id, quotas=Jsonb(known))
        for row in rows:
            changes = {"before": {"quotas": row["before"]}, "after": {"quotas": known}}
            yield from self._audit(by, "token.quota", [f"token:{token_id}"], **changes)
        return bool(rows)

    def once(self, actor: str, key: str, digest: str, op: Op[Json]) -> Op[tuple[Json, bool]]:
        """Run an operation once per actor and key. Return the response and whether it's a repeat.

        Raise IdempotencyConflict if the key was used with a different digest. If the same key is in
        use right now, wait for the first run to finish.
        """
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
                "the idempotency key was used for another request within the last day; use a new "
                "key, or send the same request"
            )
        if first["answer"] is not None:
            return first["answer"], True
        answer = yield from op
        yield self._query("store_response", actor=actor, key=key, answer=Jsonb(answer))
        return answer, False


def _token(row: Row) -> TokenRow:
    parts = ("scopes", "queues", "tasks")
    values = {name: value for name, value in row.items() if name not in parts}
    scopes = tuple(Scope(word) for word in row["scopes"])
    grant = Grant(scopes, tuple(row["queues"]), tuple(row["tasks"]))
    return TokenRow(**values | {"state": TokenState(row["state"])}, grant=grant)
