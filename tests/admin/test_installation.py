"""What an operator sees and changes of queues, workers and settings."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from support.store import A, B
from tenure._model.worker import NewWorker
from tenure._rules.runtime_settings import BUILT_IN, SETTINGS, check_setting
from tenure.admin import By, Setting
from tenure.errors import InvalidValue

if TYPE_CHECKING:
    from support.store import Database
    from tenure.admin import Admin

ANA = By("ana", source="suite", reason="a trial")
LATER = datetime(2099, 1, 1, tzinfo=UTC)


async def test_queue_is_paused_with_operator_and_reason_and_resumed(admin: Admin) -> None:
    assert admin.queues.list() == []
    paused = admin.queues.pause("mail", ANA, until=LATER)
    assert (paused.paused_by, paused.paused_reason, paused.paused_until) == (
        "ana",
        "a trial",
        LATER,
    )
    assert admin.queues.list() == [paused]
    assert (await admin.queues.aresume("mail", ANA)).paused_at is None


async def test_a_queue_gets_a_limit_and_a_lease_of_its_own(admin: Admin) -> None:
    """Shows R8, R9."""
    assert admin.queues.limit("mail", 5, ANA).max_running == 5
    row = admin.queues.configure("mail", ANA, lease=timedelta(seconds=60), max_attempts=None)
    assert (row.max_running, row.lease) == (5, timedelta(seconds=60))
    assert admin.queues.limit("mail", None, ANA).max_running is None
    actions = [change.action for change in admin.audit.list("queue:mail")]
    assert actions == ["queue.limit", "queue.configure", "queue.limit"]


async def test_known_worker_gets_a_drain_request(db: Database, admin: Admin) -> None:
    """Shows R30, R31."""
    await db.run(
        db.store.workers.register(NewWorker(A, "anna", "host-1", 4711, "1.2.3", ["q"], 10))
    )
    [worker] = admin.workers.list()
    assert (worker.name, worker.drain_requested) == ("anna", False)
    assert admin.workers.drain(worker.id, ANA)
    assert not admin.workers.drain(B, ANA)
    assert admin.workers.list()[0].drain_requested


async def test_settings_show_what_is_in_force_beside_what_is_built_in(admin: Admin) -> None:
    """Shows R38."""
    admin.settings.set("max_attempts", 7, ANA)
    in_force = {setting.name: setting for setting in admin.settings.list()}
    assert list(in_force) == list(SETTINGS)
    assert in_force["max_attempts"] == Setting("max_attempts", 7, 3, changed=True)
    assert in_force["lease"] == Setting("lease", 30, 30, changed=False)

    admin.settings.reset("max_attempts", ANA)
    assert not any(setting.changed for setting in admin.settings.list())


@pytest.mark.parametrize("name", BUILT_IN)
def test_every_built_in_value_is_one_that_may_be_set(name: str) -> None:
    check_setting(name, BUILT_IN[name])


async def test_a_setting_that_does_not_exist_is_not_reset_in_silence(admin: Admin) -> None:
    with pytest.raises(InvalidValue, match="setting 'leese' does not exist; settings are lease"):
        admin.settings.reset("leese", ANA)
