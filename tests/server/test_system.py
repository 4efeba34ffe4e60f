"""What pages are spellings of: leases, the pace of queues, the audit, the system, the doctor."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tenure.admin import By

if TYPE_CHECKING:
    from tests.server.conftest import Service

OPS = By("ops", "cli", "because")
ME = {"name": "here", "host": "box", "version": "1", "language": "bash", "slots": 3}


def test_lease_shows_remaining_time_and_holder(service: Service) -> None:
    """Shows R2."""
    job_id = service.enqueue("leased")
    with service.caller() as caller, service.caller("read", queues=("other",)) as stranger:
        got = caller.post("/v1/leases:acquire", json={"queues": ["leased"], "worker": ME}).json()
        [lease] = caller.get("/v1/leases", params={"queue": "leased"}).json()["leases"]
        assert lease["job_id"] == job_id == got["jobs"][0]["id"]
        assert lease["length"] == pytest.approx(30, abs=0.01)
        assert 0 < lease["remaining"] <= lease["length"]
        assert stranger.get("/v1/leases").json()["leases"] == []
        assert stranger.get("/v1/leases", params={"queue": "leased"}).status_code == 403


def test_every_known_queue_has_a_pace(service: Service) -> None:
    service.enqueue("paced")
    with service.caller("read", queues=("paced",)) as caller:
        found = caller.get("/v1/queues/throughput", params={"minutes": 5}).json()
    [pace] = found["queues"]
    assert pace == {"queue": "paced", "completed": [0] * 5, "failed": [0] * 5}


def test_schedule_list_includes_ticks_on_request(service: Service) -> None:
    """Shows R28."""
    service.admin.schedules.create("in-words", "t", OPS, cron="0 9 * * 1-5", queue="worded")
    with service.caller("read", queues=("worded",)) as caller:
        [plain] = caller.get("/v1/schedules").json()["schedules"]
        [ticked] = caller.get("/v1/schedules", params={"ticks": 20}).json()["schedules"]
    assert plain["words"] == "At 09:00 on Monday through Friday"
    assert (plain["past_runs"], ticked["past_runs"], ticked["last_state"]) == ([], [], None)


def test_the_audit_needs_no_target_and_tells_what_is_different(service: Service) -> None:
    service.admin.queues.limit("audited", 7, OPS)
    with service.caller("read") as caller:
        params = {"actor": "ops", "source": "cli", "action": "queue"}
        found = caller.get("/v1/audit", params=params).json()
    [change] = [one for one in found["changes"] if one["target"] == "queue:audited"]
    assert change["reason"] == "because"
    assert (change["before"], change["after"]["max_running"]) == ({"name": "audited"}, 7)


@pytest.mark.parametrize(
    ("scopes", "shown"), [(("read",), False), (("read", "payload:read"), True)]
)
def test_what_a_schedule_enqueues_is_in_the_audit_for_who_may_read_it(
    service: Service, scopes: tuple[str, ...], *, shown: bool
) -> None:
    name = f"secretive-{len(scopes)}"
    args = {"to": "ada", "password": "hunter2"}
    service.admin.schedules.create(name, "t", OPS, every=3600, queue="spoken", args=args)
    with service.caller(*scopes) as caller:
        answer = caller.get("/v1/audit", params={"target": f"schedule:{name}"})
    [change] = answer.json()["changes"]
    assert "hunter2" not in answer.text
    assert ("ada" in answer.text) == shown
    assert change["after"]["task"] == "t"


def test_system_page_shows_no_secrets(service: Service) -> None:
    with service.caller("read") as caller:
        answer = caller.get("/v1/system")
    found = answer.json()
    assert found["schema_version"]["problem"] is None
    assert {table["name"] for table in found["tables"]} >= {"job", "attempt", "audit"}
    assert found["database"].startswith("postgresql://")
    assert "@" not in found["database"]
    assert found["histories"][0]["keep_days"] > 0


def test_doctor_runs_over_http(service: Service) -> None:
    with service.caller("read") as caller:
        findings = caller.get("/v1/doctor").json()["findings"]
    levels = {one["subject"]: one["level"] for one in findings}
    assert levels["database"] == "fine"
    assert all(one["todo"] for one in findings if one["level"] != "fine")
