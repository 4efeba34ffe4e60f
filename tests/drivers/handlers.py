"""Tasks whose handlers complete in a transaction of their own driver, and are killed once between
that and its COMMIT. Loaded by real workers."""

import os
import signal
from pathlib import Path

from support.drivers import DRIVERS
from tenure import AsyncJob, Job, Tenure
from tenure.config import DEFAULTS

app = Tenure(defaults=DEFAULTS.scaled(0.1))
TARGET = f"{__name__}:app"
_BY_NAME = {driver.name: driver for driver in DRIVERS}
_URL = os.environ.get("TENURE_DATABASE_URL", "")


def die_once(mark: str) -> None:
    """SIGKILL for this process, unless the mark says that it was sent already."""
    try:
        Path(mark).touch(exist_ok=False)
    except FileExistsError:
        return
    os.kill(os.getpid(), signal.SIGKILL)


@app.task
def charge(job: Job, driver: str, mark: str) -> None:
    """Write a line and complete the job, in sync code."""
    opened = _BY_NAME[driver].opened
    assert opened is not None
    with opened(_URL) as (connection, say):
        say(f"INSERT INTO ledger VALUES ('{job.id}')")
        job.complete(connection=connection)
        die_once(mark)


@app.task
async def acharge(job: AsyncJob, driver: str, mark: str) -> None:
    """Async version."""
    aopened = _BY_NAME[driver].aopened
    assert aopened is not None
    async with aopened(_URL) as (connection, tell):
        await tell(f"INSERT INTO ledger VALUES ('{job.id}')")
        await job.complete(connection=connection)
        die_once(mark)
