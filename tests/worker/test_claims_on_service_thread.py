"""A claim's answer arrives on the service thread: a blocked loop keeps no lease from renewal."""

import time

import psycopg

from support.store import Database
from tests.worker.acts import end, until
from tests.worker.conftest import Apps

_WAITING = (
    "SELECT pid FROM pg_stat_activity "
    "WHERE wait_event_type = 'Lock' AND application_name LIKE '%claimer'"
)
_RENEWED = "SELECT renewed_at > claimed_at FROM tenure.job WHERE state = 'running'"


async def test_a_lease_claimed_while_the_loop_is_blocked_is_renewed(
    apps: Apps, db: Database
) -> None:
    app = apps()

    @app.task()
    async def nothing() -> None: ...

    async with app.run(name="blocked"):
        with psycopg.connect(db.url) as locking:
            locking.execute("LOCK TABLE tenure.queue IN ACCESS EXCLUSIVE MODE")
            handle = nothing.using(connection=locking).enqueue()
            await until(lambda: db.fetch(_WAITING))
            # Nothing is awaited from here on: the loop stands still, as under a handler.
            locking.commit()
            assert _is_renewed(db.url)
        await end(handle)


def _is_renewed(url: str) -> bool:
    """Whether a running job's lease is renewed before it ends, seen without the loop."""
    until_then = time.monotonic() + 3
    with psycopg.connect(url, autocommit=True) as connection:
        while time.monotonic() < until_then:
            row = connection.execute(_RENEWED).fetchone()
            if row and row[0]:
                return True
            time.sleep(0.05)
    return False
