"""The schema under an operator's hands: looked at, migrated, written out, kept."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import psycopg
import pytest

from support.store import install
from tenure import _wiring, admin
from tenure._store.postgres.schema import migrations
from tenure.admin import Admin, By, State
from tenure.errors import ConfigError, InvalidValue, SchemaTooOld, Unreachable

if TYPE_CHECKING:
    from collections.abc import Iterator

OURS = len(migrations())
NAMES = [migration.name for migration in migrations()]
ANA = By("ana")


@pytest.fixture
def bare(empty_database: str) -> Iterator[Admin]:
    """The verbs over a database that nothing was migrated in yet."""
    engine = _wiring.engine(empty_database)
    yield Admin(engine)
    engine.close()


def test_an_empty_database_has_everything_pending(bare: Admin) -> None:
    found = bare.schema.status()
    assert (found.version, found.needed, list(found.pending)) == (0, OURS, NAMES)
    assert not found.fits
    assert found.problem is not None
    assert found.problem.endswith("run: tenure db migrate")


def test_a_migrated_schema_fits_and_is_ready_for_work(bare: Admin) -> None:
    assert bare.schema.plan() == [f"{name} up" for name in NAMES]
    assert bare.schema.migrate() == [f"{name} up" for name in NAMES]
    found = bare.schema.status()
    assert (found.version, found.pending, found.fits) == (OURS, [], True)
    # Its end is filed under a day, so that the partitions must be there.
    job = bare.jobs.enqueue("work", {}, ANA)
    bare.jobs.cancel([job.id], ANA)
    assert [ended.id for ended in bare.jobs.list(State.CANCELLED).jobs] == [job.id]
    assert bare.schema.migrate() == []


async def test_the_twin_migrates_too(empty_database: str) -> None:
    engine = _wiring.engine(empty_database)
    verbs = Admin(engine)
    assert await verbs.schema.amigrate() == [f"{name} up" for name in NAMES]
    assert (await verbs.schema.astatus()).fits
    await engine.aclose()


def test_a_schema_goes_back_and_forth(bare: Admin) -> None:
    bare.schema.migrate()
    assert bare.schema.plan(to=0) == [f"{name} down" for name in reversed(NAMES)]
    assert bare.schema.migrate(to=0) == [f"{name} down" for name in reversed(NAMES)]
    assert bare.schema.migrate(to=0) == []
    assert bare.schema.status().version == 0
    assert bare.schema.migrate() == [f"{name} up" for name in NAMES]


@pytest.mark.parametrize("version", [-1, OURS + 1])
def test_a_version_that_is_not_known_is_refused(bare: Admin, version: int) -> None:
    for ask in (bare.schema.plan, bare.schema.migrate):
        with pytest.raises(InvalidValue, match=f"this release has 0 to {OURS}"):
            ask(to=version)
    with pytest.raises(InvalidValue):
        admin.sql(since=version)


def test_the_text_of_the_migrations_makes_the_schema_of_this_release(
    bare: Admin, empty_database: str
) -> None:
    with psycopg.connect(empty_database, autocommit=True) as connection:
        connection.execute(admin.sql().encode())
        assert bare.schema.status().fits
        assert bare.schema.maintain().done
        connection.execute(admin.sql(since=OURS, to=0).encode())
    assert bare.schema.status().version == 0


def test_the_text_is_for_the_schema_that_is_named() -> None:
    text = admin.sql("jobs")
    assert "CREATE TABLE jobs.job (" in text
    # The names of Tenure's own tasks and queues have nothing to do with the schema.
    assert "tenure." not in re.sub(r"'tenure\.\w+'", "", text)
    assert "/*schema.*/" not in text
    assert admin.sql(since=OURS) == ""
    with pytest.raises(InvalidValue):
        admin.sql('x"; DROP')


def test_a_connection_refuses_a_schema_that_does_not_fit(empty_database: str) -> None:
    with pytest.raises(SchemaTooOld), admin.connect(empty_database):
        pass
    with admin.connect(empty_database, check=False) as verbs:
        assert not verbs.schema.status().fits


def test_a_connection_is_one_and_is_closed_at_the_end(empty_database: str) -> None:
    install(empty_database)
    with (
        psycopg.connect(empty_database, autocommit=True) as watch,
        admin.connect(empty_database) as verbs,
    ):
        verbs.workers.list()
        verbs.queues.list()
        query = (
            "SELECT count(*) FROM pg_stat_activity "
            "WHERE datname = current_database() AND application_name = 'tenure'"
        )
        assert watch.execute(query).fetchone() == (1,)


def test_missing_server_is_reported_at_once() -> None:
    with (
        pytest.raises(Unreachable, match="check that the server runs"),
        admin.connect("postgresql://nobody@127.0.0.1:1/none"),
    ):
        pass


def test_a_url_that_cannot_be_read_is_not_repeated() -> None:
    with (
        pytest.raises(ConfigError) as refused,
        admin.connect("postgresql://ana:geheim@host:5432/db?nonsense=geheim"),
    ):
        pass
    assert "geheim" not in str(refused.value)
    assert refused.value.__cause__ is None
