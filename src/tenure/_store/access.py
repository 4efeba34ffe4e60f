"""What every store can do for access over the server. A part of the port."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tenure._model.access import NewToken, TokenRow
    from tenure._model.audit import By
    from tenure._model.ids import Json
    from tenure._store.port import Op


class AccessStore(Protocol):
    """Access tokens, and the answers to requests with an idempotency key."""

    def create_token(self, new: NewToken, by: By) -> Op[TokenRow]:
        """Make an access token known by the digest of its secret."""

    def find_token(self, digest: str) -> Op[TokenRow | None]:
        """The access token whose secret has this digest, in whatever state, or None."""

    def touch_tokens(self, ids: Sequence[int]) -> Op[int]:
        """Note that access tokens were used, each at most once a minute; never waits."""

    def tokens(
        self, *, before: int | None = None, count: int = 100, active: bool = False
    ) -> Op[Sequence[TokenRow]]:
        """Access tokens, newest first, below an id; the active ones alone, if so asked."""

    def revoke_tokens(self, ids: Sequence[int], by: By) -> Op[Sequence[bool]]:
        """Let access tokens in no more; False for one that is not there, or was revoked before."""

    def once(self, actor: str, key: str, digest: str, op: Op[Json]) -> Op[tuple[Json, bool]]:
        """Perform an operation once for an actor's idempotency key, in one transaction with its
        answer, which must be JSON. The same digest again within a day has the first answer, and
        True; another one is an IdempotencyConflict. Two at once: the second waits."""
