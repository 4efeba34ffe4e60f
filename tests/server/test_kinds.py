"""Kinds of work over HTTP: what a request may say, and what the installation must have enabled."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from support.serving import OPS

if TYPE_CHECKING:
    from collections.abc import Iterator

    import httpx

    from tests.server.conftest import Service

HOOK = {"method": "POST", "url": "https://example.com/hook", "json": {"order": 7}}


@pytest.fixture
def operator(service: Service) -> Iterator[httpx.Client]:
    with service.caller() as operator:
        yield operator


@pytest.fixture
def enabled(operator: httpx.Client) -> Iterator[None]:
    assert operator.put("/v1/settings/enabled_kinds", json={"value": ["http"]}).is_success
    yield
    assert operator.delete("/v1/settings/enabled_kinds").is_success


def test_a_kind_that_is_not_enabled_is_refused_with_the_command_that_enables_it(
    operator: httpx.Client,
) -> None:
    for body in ({"http": HOOK}, {"task": "tenure.http", "args": HOOK}):
        refused = operator.post("/v1/jobs", json=body)
        assert (refused.status_code, refused.json()["code"]) == (422, "invalid")
        assert """tenure setting set enabled_kinds '["http"]'""" in refused.json()["detail"]
    schedule = {"name": "nightly", "cron": "0 3 * * *", "http": HOOK}
    refused = operator.post("/v1/schedules", json=schedule)
    assert "http work is not enabled" in refused.json()["detail"]


@pytest.mark.usefixtures("enabled")
def test_a_request_is_a_job_of_its_kinds_task_and_queue(operator: httpx.Client) -> None:
    made = operator.post("/v1/jobs", json={"http": HOOK, "priority": 7})
    assert made.status_code == 201

    job = operator.get(f"/v1/jobs/{made.json()['id']}").json()

    assert (job["task"], job["queue"], job["priority"]) == ("tenure.http", "http", 7)
    assert (job["args"]["url"], job["args"]["json"]) == (HOOK["url"], HOOK["json"])
    elsewhere = operator.post("/v1/jobs", json={"http": HOOK, "queue": "hooks"}).json()
    assert operator.get(f"/v1/jobs/{elsewhere['id']}").json()["queue"] == "hooks"


@pytest.mark.usefixtures("enabled")
def test_many_requests_and_a_schedule_of_one(operator: httpx.Client) -> None:
    jobs = [{"http": HOOK}, {"task": "mail.send", "queue": "kinds"}]
    made = operator.post("/v1/jobs:batch", json={"jobs": jobs})
    assert [
        operator.get(f"/v1/jobs/{one['id']}").json()["task"] for one in made.json()["jobs"]
    ] == [
        "tenure.http",
        "mail.send",
    ]
    schedule = {"name": "nightly-hook", "cron": "0 3 * * *", "http": HOOK}
    made = operator.post("/v1/schedules", json=schedule)
    assert made.status_code == 201
    row = operator.get("/v1/schedules/nightly-hook").json()
    assert (row["task"], row["queue"]) == ("tenure.http", "http")


@pytest.mark.usefixtures("enabled")
@pytest.mark.parametrize(
    ("body", "why"),
    [
        ({}, "exactly one of task"),
        ({"task": "mail.send", "http": HOOK}, "exactly one of task"),
        ({"http": HOOK, "args": {"n": 1}}, "exactly one of task"),
        ({"http": {"url": "https://example.com"}, "shell": {"argv": ["/bin/true"]}}, "exactly one"),
        ({"http": {"method": "POST", "url": "ftp://example.com"}}, "url"),
        ({"http": {"method": "POST", "url": "https://example.com", "colour": 1}}, "colour"),
    ],
)
def test_work_that_makes_no_sense_is_refused(
    operator: httpx.Client, body: dict[str, Any], why: str
) -> None:
    refused = operator.post("/v1/jobs", json=body)
    assert refused.status_code == 422
    assert why in refused.text


@pytest.mark.usefixtures("enabled")
def test_a_token_for_some_tasks_may_not_send_requests(service: Service) -> None:
    made = service.admin.tokens.create("mail", OPS, scopes=["enqueue"], tasks=["mail.*"])
    with service.caller() as tenant:
        tenant.headers["Authorization"] = f"Bearer {made.secret}"
        refused = tenant.post("/v1/jobs", json={"http": HOOK})
    assert refused.status_code == 403


@pytest.mark.usefixtures("enabled")
def test_other_arguments_of_a_kind_are_checked_as_in_an_enqueue(
    service: Service, operator: httpx.Client
) -> None:
    queued = operator.post("/v1/jobs", json={"http": HOOK}).json()["id"]
    wrong = operator.patch(f"/v1/jobs/{queued}", json={"args": {**HOOK, "url": "ftp://a/b"}})
    assert (wrong.status_code, wrong.json()["code"]) == (422, "invalid")
    new = {**HOOK, "url": "https://example.com/other"}
    assert operator.patch(f"/v1/jobs/{queued}", json={"args": new}).is_success
    assert operator.get(f"/v1/jobs/{queued}").json()["args"]["url"] == new["url"]

    service.admin.jobs.cancel([queued], OPS)
    refused = operator.post(f"/v1/jobs/{queued}:rerun", json={"args": {"url": 7}})
    assert (refused.status_code, refused.json()["code"]) == (422, "invalid")
    assert operator.post(f"/v1/jobs/{queued}:rerun").status_code == 201


def test_a_kind_that_was_disabled_does_not_run_again(
    service: Service, operator: httpx.Client
) -> None:
    service.admin.settings.set("enabled_kinds", ["http"], OPS)
    job_id = operator.post("/v1/jobs", json={"http": HOOK}).json()["id"]
    service.admin.settings.reset("enabled_kinds", OPS)
    for answer in (
        operator.patch(f"/v1/jobs/{job_id}", json={"args": HOOK}),
        operator.post(f"/v1/jobs/{job_id}:rerun"),
    ):
        assert "http work is not enabled" in answer.json()["detail"]
    assert operator.patch(f"/v1/jobs/{job_id}", json={"priority": 1}).is_success
