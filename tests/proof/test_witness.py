"""The witness of a run's leases must see one that is valid again, however briefly it was
over, and must not stop looking in silence."""

from __future__ import annotations

import threading
from datetime import UTC, datetime
from itertools import count
from typing import TYPE_CHECKING

import psycopg

from proof.checker.whole import margins
from proof.faults import grants
from proof.faults.jobs import LEASE
from proof.partitions.verdict import last_ends
from proof.poller import Looking
from support.processes import wait_for
from support.store import SECOND, A, lanes
from tests.conformance.acts import enqueue

if TYPE_CHECKING:
    import pytest

    from proof.checker.events import Violation
    from support.store import Database
    from tenure._model.lease import Lease

EXTEND = "UPDATE tenure.job SET lease_expires_at = lease_expires_at + %s * interval '1 s'"


def revived(url: str) -> list[Violation]:
    with psycopg.connect(url, autocommit=True) as connection:
        return list(grants.revived(connection.execute(grants.GRANTS).fetchall()))


async def held(db: Database) -> Lease:
    grants.note(db.url)
    await enqueue(db)
    found = await db.run(db.store.leases.claim(lanes("q"), count=1, worker=A, ttl=LEASE * SECOND))
    return found.jobs[0].lease


async def test_a_renewal_at_the_last_moment_revives_nothing(db: Database) -> None:
    lease = await held(db)
    db.clock.advance(LEASE * SECOND * 0.999)
    await db.run(db.store.leases.renew([lease]))

    assert await db.fetch("SELECT * FROM lease_grant")
    assert revived(db.url) == []


async def test_a_grant_a_moment_after_the_end_is_seen(db: Database) -> None:
    lease = await held(db)
    with psycopg.connect(db.url, autocommit=True) as connection:
        connection.execute(EXTEND, [LEASE + 0.05])

    [found] = revived(db.url)
    assert (found.invariant, found.job_id) == ("I3", lease.job_id)
    assert "0.050 s after its end" in found.what


async def test_a_lease_that_is_cut_short_is_not_granted(db: Database) -> None:
    """As a worker of the previous release does, whose child died."""
    await held(db)
    with psycopg.connect(db.url, autocommit=True) as connection:
        connection.execute(EXTEND, [-LEASE / 2])
    assert await db.fetch("SELECT * FROM lease_grant") == []


async def test_who_looks_tells_how_often(db: Database) -> None:
    seen = threading.Event()
    with Looking(db.url, lambda _: seen.set(), every=0.001) as looking:
        assert seen.wait(10)
        assert wait_for(lambda: looking._looks > 0, 10)
    assert looking.pace > 0


async def test_who_dies_on_the_way_has_not_looked(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = count()

    def look(_: object) -> None:
        if next(looks) == 100:
            raise ValueError("it sees no more")

    monkeypatch.setattr(threading, "excepthook", lambda _: None)
    with Looking(db.url, look, every=0.0) as looking:
        looking._thread.join(10)
    assert looking.pace == 0


def test_the_end_of_a_lease_is_the_last_that_was_seen() -> None:
    claimed = datetime(2026, 1, 1, tzinfo=UTC)
    seen = {(1, 5): claimed + 5 * SECOND, (2, 5): claimed + SECOND, (9, 9): claimed}
    ends = last_ends({(1, 5): claimed, (2, 5): claimed, (3, 5): claimed}, seen)
    at = claimed.timestamp()
    assert ends == {(1, 5): at + 5, (2, 5): at + LEASE, (3, 5): at + LEASE}

    _, found = margins([(1, 5, at + 4.9), (2, 5, at + LEASE), (9, 9, at)], ends)
    assert [(one.invariant, one.job_id) for one in found] == [("I5", 2), ("I5", 9)]
