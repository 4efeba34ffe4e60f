"""Every extension of a lease, noted by the database on trial in the transaction that makes it:
until when the lease was, and until when it is. So none is missed between two looks. The counters of
a job are noted too when its row goes, because the archive keeps only one of them."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

import psycopg

from proof.checker.events import Violation
from proof.faults.jobs import LEASE

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

# The time is judged and then granted, in one statement and under one lock, not at one instant.
_AT_ONCE = 0.01
# The condition is judged without a call: nearly every update is a claim or an end.
_NOTED = """
CREATE TABLE lease_grant (
    job_id bigint NOT NULL,
    token bigint NOT NULL,
    before timestamptz NOT NULL,
    until timestamptz NOT NULL
);
CREATE FUNCTION note_grant() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO public.lease_grant
    VALUES (NEW.id, NEW.token, OLD.lease_expires_at, NEW.lease_expires_at);
    RETURN NULL;
END
$$;
CREATE TRIGGER note_grant AFTER UPDATE OF lease_expires_at ON tenure.job FOR EACH ROW
WHEN (OLD.token = NEW.token AND NEW.lease_expires_at > OLD.lease_expires_at)
EXECUTE FUNCTION note_grant();
CREATE TABLE job_counts (
    job_id bigint NOT NULL,
    losses integer NOT NULL,
    worker_losses integer NOT NULL,
    deaths integer NOT NULL
);
CREATE FUNCTION note_counts() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO public.job_counts VALUES (OLD.id, OLD.losses, OLD.worker_losses, OLD.deaths);
    RETURN NULL;
END
$$;
CREATE TRIGGER note_counts AFTER DELETE ON tenure.job FOR EACH ROW
WHEN (OLD.losses > 0 OR OLD.worker_losses > 0 OR OLD.deaths > 0)
EXECUTE FUNCTION note_counts();
"""
COUNTS = "SELECT c.job_id, c.losses, c.worker_losses, c.deaths FROM job_counts AS c"
GRANTS = """
SELECT g.job_id, g.token,
    extract(epoch FROM g.before)::float8, extract(epoch FROM g.until)::float8
FROM lease_grant AS g
"""
LOSSES = """
SELECT a.job_id, a.token,
    extract(epoch FROM a.started_at)::float8, extract(epoch FROM a.ended_at)::float8
FROM tenure.attempt AS a
WHERE a.error_type = 'LeaseExpired'
    OR starts_with(a.error_message, 'the database was restarted')
"""
Grant = tuple[int, int, float, float]


class Loss(NamedTuple):
    """A period whose lease ran out, from its claim to the rescue, by the database's clock."""

    job_id: int
    token: int
    claimed_at: float
    ended_at: float


def note(url: str) -> None:
    """Record them from now on; before the first worker, so that none waits for it."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(_NOTED)


def revived(grants: Iterable[Grant]) -> Iterator[Violation]:
    """I3: a lease is granted at its new end less its length, never after its old end."""
    for job_id, token, before, until in grants:
        after = until - LEASE - before
        if after > _AT_ONCE:
            what = f"the lease of {token} was valid again, {after:.3f} s after its end"
            yield Violation("I3", job_id, what)


def uncounted(
    losses: Iterable[Loss], grants: Iterable[Grant], starts: Collection[float]
) -> dict[int, set[int]]:
    """The tokens, by job, whose loss must not be counted: the server itself started between the
    last grant of the lease and its rescue."""
    granted: dict[tuple[int, int], float] = {}
    for job_id, token, _, until in grants:
        granted[job_id, token] = max(until - LEASE, granted.get((job_id, token), 0.0))
    found: dict[int, set[int]] = defaultdict(set)
    for job_id, token, claimed_at, ended_at in losses:
        since = granted.get((job_id, token), claimed_at)
        if any(since < start < ended_at for start in starts):
            found[job_id].add(token)
    return found
