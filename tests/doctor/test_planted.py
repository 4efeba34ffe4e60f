"""Every fault that can be planted is found by its subject, and gone when its remedy was taken."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from datetime import timedelta
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

from support.clocks import Clock
from support.daemons import PgBouncer, Redis
from support.processes import wait_for
from tenure import Tenure
from tenure._rules import alerts
from tenure.admin import doctor, examine
from tenure.types import FindingCode, Level
from tests.doctor.planted import PLANTED

if TYPE_CHECKING:
    from tests.doctor.conftest import Bed

# What is planted in tests of its own below, and what no server of ours can be brought to.
BESIDE = {
    FindingCode.CLOCK_DIFFERS,
    FindingCode.POOLER,
    FindingCode.REDIS_AWAY,
    FindingCode.NOTIFY_QUEUE_FULL,
    *(FindingCode.NOT_ENCRYPTED, FindingCode.SUPERUSER, FindingCode.PASSWORD_EXPOSED),
}
IMPOSSIBLE = {FindingCode.SERVER_TOO_OLD, FindingCode.NOT_HEARD}


def faults(url: str) -> set[FindingCode | None]:
    return {each.fault for each in examine(url)} - {None}


def test_a_sound_installation_lacks_workers_alone(bed: Bed) -> None:
    """Shows R35."""
    assert faults(bed.url) == {FindingCode.NO_WORKER}


def test_every_fault_is_planted_or_cannot_be() -> None:
    assert {each.fault for each in PLANTED.values()} | BESIDE | IMPOSSIBLE == set(FindingCode)


@pytest.mark.parametrize("name", PLANTED)
def test_fault_is_found_and_its_remedy_fixes_it(
    bed: Bed, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Shows R35."""
    # What holds dead rows matters at once, not after ten minutes.
    if PLANTED[name].fault is FindingCode.HORIZON_HELD:
        monkeypatch.setattr(alerts, "HELD_FOR", timedelta(0))
        monkeypatch.setattr(alerts, "HELD_TRANSACTIONS", 0)
    if PLANTED[name].fault is FindingCode.JOB_LOCKED:
        monkeypatch.setattr(doctor, "PASSED_OVER_FOR", timedelta(0))
    planted = PLANTED[name]
    url = planted.plant(bed)

    found = bed.until(planted.fault, url)
    first = next(each for each in found if each.fault is planted.fault)
    assert (first.subject, first.level is Level.FINE) == (planted.subject, False)
    assert first.why
    assert {each.fault for each in found} <= {planted.fault, FindingCode.NO_WORKER, None}

    if planted.restore:
        url = planted.restore(bed)
    else:
        bed.do(first.todo)
    # A lease whose row is no longer locked still has to be ended: another remedy.
    assert wait_for(
        lambda: not [each for each in bed.found(planted.fault, url) if each.todo == first.todo], 20
    )


def test_pooler_is_found_and_the_direct_address_fixes_it(bed: Bed) -> None:
    with PgBouncer(port=bed.cluster.port) as pgbouncer:
        url = pgbouncer.url(urlsplit(bed.url).path.removeprefix("/"))
        [found] = bed.found(FindingCode.POOLER, url)
        assert found.subject == "wakeups"
        assert "connect workers to PostgreSQL directly" in found.todo
    assert not bed.found(FindingCode.POOLER)


def test_a_redis_that_is_away_is_found_until_it_is_started(bed: Bed) -> None:
    """Shows R34."""
    with Redis() as redis:
        app = Tenure(bed.url, redis=redis.url)
        redis.stop()
        [found] = [each for each in app.admin.doctor() if each.fault is FindingCode.REDIS_AWAY]
        assert (found.subject, "start Redis" in found.todo) == ("redis", True)
        redis.start()
        assert not [each for each in app.admin.doctor() if each.fault is FindingCode.REDIS_AWAY]
        app.close()


def test_clocks_that_differ_are_found_until_they_agree(bed: Bed) -> None:
    with Clock(60) as clock:
        [found] = [
            each for each in _message(bed, **clock.environment) if each["subject"] == "clock"
        ]
    assert found["fault"] == FindingCode.CLOCK_DIFFERS
    assert re.fullmatch(r"the database clock is (59|60) s behind", found["what"])
    [found] = [each for each in _message(bed) if each["subject"] == "clock"]
    assert found["level"] == Level.FINE


def _message(bed: Bed, **environment: str) -> list[dict[str, str]]:
    """What the command finds, in a process with this environment."""
    done = subprocess.run(
        [sys.executable, "-m", "tenure", "doctor", "--json", "--database-url", bed.url],
        env={**os.environ, **environment},
        capture_output=True,
        timeout=60,
        check=False,
    )
    findings: list[dict[str, str]] = json.loads(done.stdout)["findings"]
    return findings
