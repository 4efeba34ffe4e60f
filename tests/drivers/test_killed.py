"""kill -9 between a completion and its COMMIT, through each driver, in a real worker."""

from __future__ import annotations

from typing import TYPE_CHECKING

import psycopg
import pytest

from support.drivers import DRIVERS
from support.store import install
from support.workers import Bed, Worker, soon
from tests.drivers.handlers import TARGET, acharge, charge

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.databases import Databases
    from support.drivers import Driver
    from tenure._model.ids import JobId


class Killed:
    """One worker and one job for each driver, whose first attempt was killed before its COMMIT."""

    def __init__(self, bed: Bed) -> None:
        self.bed = bed
        tasks = [charge if driver.opened else acharge for driver in DRIVERS]
        calls = [
            task.bind(driver.name, str(bed.directory / f"{number}.mark"))
            for number, (task, driver) in enumerate(zip(tasks, DRIVERS, strict=True))
        ]
        self.jobs: dict[str, JobId] = dict(
            zip([driver.name for driver in DRIVERS], bed.enqueue(calls), strict=True)
        )


@pytest.fixture(scope="module")
def killed(databases: Databases, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Killed]:
    """The jobs once all of them have ended."""
    url = databases.create(databases.template("tenure", install))
    directory = tmp_path_factory.mktemp("killed")
    with psycopg.connect(url) as connection:
        connection.execute("CREATE TABLE ledger (entry text)")
    bed = Bed(url, directory)
    killed = Killed(bed)
    with Worker(TARGET, url, directory, concurrency=1) as worker:
        soon(lambda: bed.ended() == len(DRIVERS), 200, f"not all completed: {worker.log()}")
    yield killed
    bed.close()
    databases.drop(url)


@pytest.mark.timeout(240)
@pytest.mark.parametrize("driver", DRIVERS, ids=[d.name for d in DRIVERS])
def test_the_writes_happen_once(killed: Killed, driver: Driver) -> None:
    """Shows R7. Shows R20."""
    job_id = killed.jobs[driver.name]
    written = "SELECT count(*) FROM ledger WHERE entry = %s"

    assert killed.bed.count(written, str(job_id)) == 1
    assert [str(a.outcome) for a in killed.bed.attempts(job_id)] == ["lost", "completed"]
