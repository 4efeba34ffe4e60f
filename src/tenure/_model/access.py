"""The HTTP server's scopes, grants and access tokens."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from uuid import UUID


class Scope(StrEnum):
    """What an access token can allow."""

    ENQUEUE = "enqueue"
    WORK = "work"
    READ = "read"
    PAYLOAD_READ = "payload:read"
    OPERATE = "operate"
    ADMIN = "admin"


class TokenState(StrEnum):
    """An access token's state. Only active tokens are accepted."""

    ACTIVE = "active"
    EXPIRED = "expired"
    REVOKED = "revoked"


@dataclass(frozen=True, slots=True)
class Grant:
    """A set of scopes, each granted for every queue that matches one of the patterns.

    `tasks` lists patterns for the tasks that may be enqueued.
    """

    scopes: tuple[Scope, ...]
    queues: tuple[str, ...]
    tasks: tuple[str, ...] = ("*",)


@dataclass(frozen=True, slots=True)
class NewToken:
    """An access token to store, without its secret."""

    name: str
    hint: str
    digest: str
    grant: Grant
    expires_in: timedelta | None = None
    quotas: Mapping[str, float] = field(default_factory=dict)
    parent: int | None = None


@dataclass(frozen=True, slots=True)
class TokenRow:
    """A stored access token. `hint` is the start of its secret."""

    id: int
    name: str
    hint: str
    state: TokenState
    grant: Grant
    created_at: datetime
    created_by: str
    expires_at: datetime | None = None
    last_used_at: datetime | None = None
    revoked_at: datetime | None = None
    revoked_by: str | None = None
    created_by_token: int | None = None
    quotas: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class KnownToken(TokenRow):
    """An access token that was found by its secret. `page_key` seals its page tokens."""

    page_key: UUID = field(default=UUID(int=0), repr=False)


class Role(StrEnum):
    """A named bundle of scopes, for access tokens and for people."""

    VIEWER = "viewer"
    OPERATOR = "operator"
    ADMIN = "admin"


class SessionState(StrEnum):
    """A dashboard session's state. Only active sessions are accepted."""

    ACTIVE = "active"
    EXPIRED = "expired"
    ENDED = "ended"


@dataclass(frozen=True, slots=True)
class NewSession:
    """A dashboard session to store, with a digest in place of its id.

    `token_id` is None for a user who was signed in by another system. In that case, the session has
    its own grant.
    """

    digest: str
    name: str
    provider: str
    grant: Grant
    lifetime: timedelta
    idle: timedelta
    token_id: int | None = None
    address: str | None = None
    user_agent: str | None = None


@dataclass(frozen=True, slots=True)
class SessionRow:
    """A stored dashboard session. `ends_at` is when it ends if it isn't used before then."""

    id: int
    state: SessionState
    name: str
    provider: str
    token_id: int | None
    grant: Grant
    created_at: datetime
    seen_at: datetime
    ends_at: datetime
    address: str | None = None
    user_agent: str | None = None
    ended_at: datetime | None = None
    ended_by: str | None = None
