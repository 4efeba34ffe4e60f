"""Rules for notices over HTTP."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.server.conftest import Service

RULE = {"name": "api", "event": "failed", "secret": "ops", "url": "https://hooks.example.com/x"}


def test_a_rule_is_added_listed_tested_and_removed(service: Service) -> None:
    with service.caller("admin") as caller:
        added = caller.post("/v1/notices", json=RULE)
        assert added.status_code == 201
        assert added.json()["group_for"] == 300
        listed = caller.get("/v1/notices").json()["rules"]
        assert [rule["name"] for rule in listed] == ["api"]
        again = caller.post("/v1/notices", json=RULE)
        assert (again.status_code, "name must be new" in again.text) == (422, True)
        tested = caller.post("/v1/notices/api:test").json()
        job = caller.get(f"/v1/jobs/{tested['job_id']}").json()
        assert (tested["result"], job["task"]) == ("enqueued", "tenure.notice")
        assert caller.post("/v1/notices/api:remove").json() == {"result": "removed"}
        assert caller.post("/v1/notices/api:remove").status_code == 404
        assert caller.post("/v1/notices/api:test").status_code == 404


def test_rules_need_admin_for_all_queues(service: Service) -> None:
    with service.caller("admin", queues=("mail",)) as some, service.caller("operate") as operator:
        for caller in (some, operator):
            assert caller.get("/v1/notices").status_code == 403
            assert caller.post("/v1/notices", json=RULE).status_code == 403
            assert caller.post("/v1/notices/api:test").status_code == 403
            assert caller.post("/v1/notices/api:remove").status_code == 403


def test_a_notice_cannot_be_enqueued(service: Service) -> None:
    with service.caller() as caller:
        refused = caller.post("/v1/jobs", json={"task": "tenure.notice", "args": {}})
        assert refused.status_code == 422
        assert "only rules make notices" in refused.text
