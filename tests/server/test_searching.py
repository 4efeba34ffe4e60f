"""Selectors over HTTP, against a real server process: found, bounded, and not told to everybody."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tenure.admin import WINDOWS

if TYPE_CHECKING:
    from collections.abc import Iterator

    import httpx

    from tests.server.conftest import Service


@pytest.fixture
def operator(service: Service) -> Iterator[httpx.Client]:
    with service.caller() as operator:
        yield operator


def search(caller: httpx.Client, given: str, **also: Any) -> httpx.Response:
    return caller.get("/v1/jobs", params={"filter": given, **also})


def test_a_filter_finds_jobs_in_any_state_and_says_what_was_searched(
    service: Service, operator: httpx.Client
) -> None:
    """Shows R36."""
    due = service.enqueue("found", tags=["vip"], args={"to": {"id": 7}})
    later = service.enqueue("found", delay=3600, tags=["vip"])
    ended = service.enqueue("found", tags=["vip"])
    operator.post(f"/v1/jobs/{ended}:cancel")

    page = search(operator, "queue:found tag:vip").json()
    assert [job["id"] for job in page["jobs"]] == [ended, later, due]
    assert (page["search"]["bounded"], page["search"]["window"]) == (False, WINDOWS[0])
    assert page["search"]["searched"] >= 3
    assert 0 < page["search"]["took"] < 10
    assert (page["next_page_token"], page["jobs"][0]["state"]) == (None, "cancelled")

    for text, ids in {
        "queue:found state:scheduled": [later],
        "queue:found args.to.id:7": [due],
        f"id:{due},{ended}": [ended, due],
    }.items():
        assert [job["id"] for job in search(operator, text, widen=2).json()["jobs"]] == ids

    first = search(operator, "queue:found", page_size=2).json()
    token = first["next_page_token"]
    rest = search(operator, "queue:found", page_size=2, page_token=token).json()
    assert [job["id"] for job in (*first["jobs"], *rest["jobs"])] == [ended, later, due]


def test_without_state_and_filter_the_newest_of_all_are_listed(
    service: Service, operator: httpx.Client
) -> None:
    job_id = service.enqueue("newest")
    for params in ({}, {"queue": "newest"}, {"task": "task"}):
        page = operator.get("/v1/jobs", params={**params, "page_size": 1}).json()
        assert [job["id"] for job in page["jobs"]] == [job_id]
    listed = operator.get("/v1/jobs", params={"state": "queued", "queue": "newest"}).json()
    assert listed["search"] is None


def test_parse_error_names_its_place(operator: httpx.Client) -> None:
    answer = search(operator, "queue:mail stat:failed")
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid")
    assert "at character 12: there is no field 'stat'" in answer.json()["detail"]
    both = search(operator, "state:failed", queue="mail")
    assert (both.status_code, both.json()["code"]) == (422, "invalid")
    assert search(operator, "state:failed", widen=3).status_code == 422
    assert operator.get("/v1/jobs?page_token=no").status_code == 422


def test_a_filter_that_would_tell_payloads_needs_the_scope_for_them(service: Service) -> None:
    job_id = service.enqueue("guessed", args={"card": "4711"}, key="card-4711")
    asks = ("args.card:4711", "key:card-4711", "error:E")
    start = {"kind": "cancel", "rate": 1, "dry_run": True}
    with service.caller("read", "operate") as reader:
        for answer in asks:
            assert search(reader, answer).status_code == 403
            assert search(reader, f"queue:guessed {answer}").status_code == 403
        held = reader.post("/v1/operations", json=start | {"filter": "key:card-4711"})
        assert held.status_code == 403
    with service.caller("read", "payload:read", queues=("guessed",)) as ours:
        for answer in asks[:2]:
            assert search(ours, answer).status_code == 403
            found = search(ours, f"queue:guessed {answer}").json()
            assert [job["id"] for job in found["jobs"]] == [job_id]
        assert search(ours, "queue:guessed,other key:card-4711").status_code == 403


def test_a_hidden_field_cannot_be_guessed(service: Service, operator: httpx.Client) -> None:
    service.enqueue("hidden", args={"password": "hunter2"})
    answers = [
        search(operator, "queue:hidden args.password:hunter2"),
        operator.post(
            "/v1/operations",
            json={"kind": "cancel", "filter": "args.password:hunter2", "dry_run": True},
        ),
    ]
    for answer in answers:
        assert (answer.status_code, answer.json()["code"]) == (422, "invalid")
        assert "hunter2" not in answer.text


def test_another_teams_jobs_are_not_found(service: Service) -> None:
    job_id = service.enqueue("theirs")
    with service.caller("read", queues=("ours.*",)) as ours:
        assert search(ours, "queue:theirs").status_code == 403
        for text in (f"id:{job_id}", "state:queued"):
            assert search(ours, text).json()["jobs"] == []


def test_an_operation_is_started_by_a_selector(service: Service, operator: httpx.Client) -> None:
    """Shows R15."""
    for n in range(3):
        service.enqueue("selected", delay=3600, tags=["old" if n else "new"])
    request = {"kind": "cancel", "filter": "queue:selected tag:old", "rate": 1, "dry_run": True}
    answer = operator.post("/v1/operations", json=request).json()
    assert (answer["total"], answer["queue"]) == (2, "selected")
    refused = operator.post("/v1/operations", json=request | {"filter": "state:failed"})
    assert (refused.status_code, refused.json()["code"]) == (422, "invalid")
    with service.caller("operate", queues=("selected",)) as ours:
        assert ours.post("/v1/operations", json=request).status_code == 201
        for result in ("tag:old", "queue:selected,other"):
            assert ours.post("/v1/operations", json=request | {"filter": result}).status_code == 403
