"""Figures and operations over HTTP, against a real server process."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from support.processes import wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator

    import httpx

    from tests.server.conftest import Service


@pytest.fixture
def operator(service: Service) -> Iterator[httpx.Client]:
    with service.caller() as operator:
        yield operator


def fail(service: Service, operator: httpx.Client, queue: str, message: str) -> str:
    job_id = service.enqueue(queue, max_attempts=1)
    request = {"queues": [queue], "worker": {"name": "here"}}
    [job] = operator.post("/v1/leases:acquire", json=request).json()["jobs"]
    error = {"type": "Oops", "message": message}
    operator.post("/v1/leases:fail", json={"lease": job["lease"], "error": error})
    return job_id


def test_depths_are_for_people_and_autoscalers(service: Service, operator: httpx.Client) -> None:
    service.enqueue("deep")
    service.enqueue("deep", delay=3600)
    service.enqueue("deep")
    operator.post("/v1/leases:acquire", json={"queues": ["deep"], "worker": {"name": "here"}})

    def deep() -> list[dict[str, Any]]:
        queues = operator.get("/v1/queues").json()["queues"]
        return [one for one in queues if one["name"] == "deep"]

    # An answer is shared for a while, also one from before the queue was there.
    assert wait_for(lambda: bool(deep()), 20)
    [queue] = deep()
    counts = {
        name: queue[name]["value"] for name in ("due", "scheduled", "running", "held", "failed")
    }
    assert counts == {"due": 1, "scheduled": 1, "running": 1, "held": 0, "failed": 0}
    assert queue["backlog"] == 1
    assert queue["oldest_due_age"] >= 0
    assert (queue["paused_at"], queue["max_running"]) == (None, None)


def test_queues_are_listed_with_what_is_set_for_them(
    service: Service, operator: httpx.Client
) -> None:
    """Also one that nothing is in; what is set for all of them is not a queue."""
    operator.post("/v1/queues/set:limit", json={"max_running": 3})
    operator.post("/v1/queues/*:limit", json={"max_running": 100})
    try:
        found = operator.get("/v1/queues").json()
        with service.caller("read", queues=("set",)) as reader:
            seen = reader.get("/v1/queues").json()
    finally:
        operator.post("/v1/queues/*:limit", json={"max_running": None})

    [limited] = [one for one in found["queues"] if one["name"] == "set"]
    assert (limited["max_running"], limited["backlog"]) == (3, 0)
    assert limited["due"] == {"value": 0, "more": False}
    assert found["every_queue"]["max_running"] == 100
    assert "*" not in [one["name"] for one in found["queues"]]
    assert ([one["name"] for one in seen["queues"]], seen["every_queue"]) == (["set"], None)


def test_why_a_job_is_not_running_is_one_answer(service: Service, operator: httpx.Client) -> None:
    job_id = service.enqueue("asked")
    operator.post("/v1/queues/asked:pause", json={"reason": "the provider is down"})

    why = operator.get(f"/v1/jobs/{job_id}/why").json()

    assert (why["code"], why["reason"]) == ("queue_paused", "the provider is down")
    assert "paused" in why["sentence"]


def test_stats_are_there_before_anything_was_counted(operator: httpx.Client) -> None:
    answer = operator.get("/v1/stats")

    assert answer.status_code == 200, answer.text
    assert set(answer.json()["whole"]) == {"since", "until", "outcomes", "wait", "run"}


def test_dead_letters_are_grouped_and_a_group_is_retried(
    service: Service, operator: httpx.Client
) -> None:
    """Shows R15."""
    ids = {fail(service, operator, "grouped", "no way to 10.0.0.7") for _ in range(3)}
    groups: list[Any] = operator.get("/v1/failed/groups").json()["groups"]
    [group] = [one for one in groups if one["sample"] in ids]
    assert (group["task"], group["count"]) == ("task", {"value": 3, "more": False})

    request = {
        "kind": "retry",
        "filter": {"state": "failed", "queue": "grouped", "signature": group["signature"]},
        "rate": 1000,
        "reason": "fixed",
    }
    rehearsed = operator.post("/v1/operations", json=request | {"dry_run": True}).json()
    assert rehearsed["total"] == 3
    started = operator.post("/v1/operations", json=request).json()
    place = f"/v1/operations/{started['id']}"

    assert wait_for(lambda: operator.get(place).json()["state"] == "done", 30)
    assert operator.get(place).json()["outcomes"] == {"retried": 3}
    items = operator.get(f"{place}/items").json()["items"]
    assert {one["job_id"] for one in items} == ids
    assert {operator.get(f"/v1/jobs/{one}").json()["state"] for one in ids} == {"queued"}


def test_a_persons_jobs_are_erased_by_an_administrator_of_every_queue(service: Service) -> None:
    body: dict[str, Any] = {"filter": "tag:customer:7", "reason": "ticket 12"}
    job_id = service.enqueue("erased", delay=3600, tags=["customer:7"])
    with (
        service.caller("admin", queues=("erased",)) as part,
        service.caller("operate", "payload:read") as operator,
    ):
        for refused in (operator, part):
            assert refused.post("/v1/operations:erase", json=body).status_code == 403
    with service.caller("admin") as admin:
        for wrong in ({"reason": ""}, {"filter": "queue:erased"}, {"reason": "of customer:7"}):
            answer = admin.post("/v1/operations:erase", json=body | wrong)
            assert answer.status_code == 422, answer.text
        rehearsed = admin.post("/v1/operations:erase", json=body | {"dry_run": True}).json()
        assert (rehearsed["rows"]["job"], rehearsed["operation"]["total"]) == (1, 1)
        started = admin.post("/v1/operations:erase", json=body).json()
        place = f"/v1/operations/{started['operation']['id']}"
        assert wait_for(lambda: admin.get(place).json()["state"] == "done", 30)
        shown = admin.get(place).json()
        assert (shown["kind"], shown["filter"], shown["waiting"]) == ("erase", "tag:…", 0)
        assert shown["outcomes"] == {"erased": 1}
        assert admin.get(f"/v1/jobs/{job_id}").status_code == 404


def test_an_operation_is_paused_and_aborted(service: Service, operator: httpx.Client) -> None:
    for _ in range(5):
        service.enqueue("many", delay=3600)
    request = {"kind": "cancel", "filter": {"state": "queued", "queue": "many"}, "rate": 1}
    started = operator.post("/v1/operations", json=request).json()
    place = f"/v1/operations/{started['id']}"

    states = [operator.post(f"{place}:{verb}").json() for verb in ("pause", "resume", "abort")]

    assert [one["state"] for one in states] == ["paused", states[1]["state"], "aborted"]
    assert states[2]["done"] < 5


def test_a_job_is_moved_and_an_ended_one_deleted(service: Service, operator: httpx.Client) -> None:
    """Shows R36."""
    job_id = service.enqueue("from")
    moved = operator.post(f"/v1/jobs/{job_id}:move", json={"queue": "to", "priority": 9})
    assert moved.json() == {"result": "moved"}
    job = operator.get(f"/v1/jobs/{job_id}").json()
    assert (job["queue"], job["priority"]) == ("to", 9)
    assert operator.delete(f"/v1/jobs/{job_id}").status_code == 409

    operator.post(f"/v1/jobs/{job_id}:cancel")

    assert operator.delete(f"/v1/jobs/{job_id}").json() == {"result": "deleted"}
    assert operator.get(f"/v1/jobs/{job_id}").status_code == 404


def test_the_dead_letters_of_one_queue_are_for_who_may_see_it(
    service: Service, operator: httpx.Client
) -> None:
    """Shows R15."""
    ids = [fail(service, operator, "grouped-own", f"no connection to 10.0.0.{n}") for n in range(2)]
    fail(service, operator, "grouped-other", "no connection to 10.0.0.7")

    with service.caller("read", queues=("grouped-own",)) as reader:
        [group] = reader.get("/v1/failed/groups", params={"queue": "grouped-own"}).json()["groups"]
        refused = reader.get("/v1/failed/groups", params={"queue": "grouped-other"})

    assert (group["count"], group["sample"]) == ({"value": 2, "more": False}, ids[-1])
    assert (group["error_type"], group["error_message"], group["signature"]) == ("Oops", None, None)
    assert refused.status_code == 403


def test_a_job_says_who_held_it_what_failed_and_which_operations_it_was_in(
    service: Service, operator: httpx.Client
) -> None:
    """Shows R36."""
    job_id = fail(service, operator, "telling", "no connection")
    job = operator.get(f"/v1/jobs/{job_id}").json()
    [attempt] = operator.get(f"/v1/jobs/{job_id}/attempts").json()["attempts"]
    assert job["worker"] == attempt["worker"]
    values = {name: job[name] for name in ("last_outcome", "error_type", "error_message")}
    assert values == {
        "last_outcome": "failed",
        "error_type": "Oops",
        "error_message": "no connection",
    }
    with service.caller("read", queues=("telling",)) as reader:
        assert reader.get(f"/v1/jobs/{job_id}").json()["error_message"] is None

    request = {
        "kind": "retry",
        "filter": {"queue": "telling", "signature": attempt["error_signature"]},
    }
    started = operator.post("/v1/operations", json=request | {"reason": "fixed"}).json()
    [member] = operator.get(f"/v1/jobs/{job_id}/operations").json()["operations"]
    assert started["filter"] == "queue:telling error:…"
    assert (member["operation_id"], member["reason"]) == (started["id"], "fixed")


def test_a_running_job_says_when_its_lease_was_renewed_and_a_deletion_has_its_reason(
    service: Service, operator: httpx.Client
) -> None:
    job_id = service.enqueue("renewing")
    request = {"queues": ["renewing"], "worker": {"name": "here"}}
    [work] = operator.post("/v1/leases:acquire", json=request).json()["jobs"]
    operator.post("/v1/leases:renew", json={"leases": [work["lease"]]})

    why = operator.get(f"/v1/jobs/{job_id}/why").json()
    assert (why["code"], why["renewals"]) == ("running", 1)
    assert why["renewed_at"] <= why["now"]

    operator.post("/v1/leases:complete", json={"lease": work["lease"]})
    operator.delete(f"/v1/jobs/{job_id}", params={"reason": "asked by its owner"})
    [change, *_] = service.admin.audit.list(f"job:{job_id}")
    assert (change.action, change.reason) == ("delete", "asked by its owner")
