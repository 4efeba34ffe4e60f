"""Who may do what over the server: scopes, grants, and the row of an access token."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum


class Scope(StrEnum):
    """One kind of thing that an access token can allow."""

    ENQUEUE = "enqueue"
    WORK = "work"
    READ = "read"
    PAYLOAD_READ = "payload:read"
    OPERATE = "operate"
    ADMIN = "admin"


class TokenState(StrEnum):
    """Whether an access token is let in: an active one alone is."""

    ACTIVE = "active"
    EXPIRED = "expired"
    REVOKED = "revoked"


@dataclass(frozen=True, slots=True)
class Grant:
    """What is allowed: each of the scopes, in each queue that one of the patterns matches."""

    scopes: tuple[Scope, ...]
    queues: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NewToken:
    """An access token on its way into the database, without its secret."""

    name: str
    hint: str
    digest: str
    grant: Grant
    expires_in: timedelta | None = None


@dataclass(frozen=True, slots=True)
class TokenRow:
    """An access token as the store keeps it; `hint` is how its secret begins."""

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
