"""Jobs over HTTP, against a real server process."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    import httpx

    from tests.server.conftest import Service


@pytest.fixture
def operator(service: Service) -> Iterator[httpx.Client]:
    with service.caller() as operator:
        yield operator


def test_a_job_is_created_and_shown(operator: httpx.Client) -> None:
    """Shows R36."""
    request = {"task": "mail.send", "args": {"to": "Ada"}, "queue": "shown", "priority": 7}
    made = operator.post("/v1/jobs", json=request)
    assert (made.status_code, made.json()["created"]) == (201, True)

    job = operator.get(f"/v1/jobs/{made.json()['id']}").json()

    assert {name: job[name] for name in request} == request
    assert (job["state"], job["attempt"], job["payload"]) == ("queued", 0, True)


def test_the_same_key_makes_one_job(operator: httpx.Client) -> None:
    request = {"task": "mail.send", "key": "ada", "queue": "keyed"}

    first, second = [operator.post("/v1/jobs", json=request).json() for _ in range(2)]

    assert (first["created"], second["created"]) == (True, False)
    assert first["id"] == second["id"]


def test_an_idempotency_key_makes_a_request_happen_once(operator: httpx.Client) -> None:
    jobs = {"jobs": [{"task": "mail.send", "queue": "once"} for _ in range(3)]}
    key = {"Idempotency-Key": "monday"}

    first, second = [
        operator.post("/v1/jobs:batch", json=jobs, headers=key).json() for _ in range(2)
    ]
    other = operator.post("/v1/jobs:batch", json={"jobs": jobs["jobs"][:1]}, headers=key)

    assert (first["repeated"], second["repeated"]) == (False, True)
    assert first["jobs"] == second["jobs"]
    assert (other.status_code, other.json()["code"]) == (409, "idempotency-conflict")
    page = operator.get("/v1/jobs", params={"state": "queued", "queue": "once"}).json()
    assert len(page["jobs"]) == 3


def test_of_a_batch_with_a_bad_job_nothing_is_enqueued(operator: httpx.Client) -> None:
    jobs = [{"task": "mail.send", "queue": "all"}, {"task": "no good", "queue": "all"}]

    answer = operator.post("/v1/jobs:batch", json={"jobs": jobs})

    assert (answer.status_code, answer.json()["code"]) == (422, "invalid")
    page = operator.get("/v1/jobs", params={"state": "queued", "queue": "all"}).json()
    assert page["jobs"] == []


def test_list_continues_from_its_token(service: Service, operator: httpx.Client) -> None:
    made = {service.enqueue("paged") for _ in range(5)}
    seen: set[str] = set()
    token = None
    for _ in range(10):
        where = {"state": "queued", "queue": "paged", "page_size": "2"}
        page = operator.get("/v1/jobs", params=where | ({"page_token": token} if token else {}))
        seen |= {job["id"] for job in page.json()["jobs"]}
        token = page.json()["next_page_token"]
        if token is None:
            break

    assert seen == made


def test_it_is_held_resumed_cancelled_and_not_brought_back(
    service: Service, operator: httpx.Client
) -> None:
    """Shows R36. Shows R28."""
    job_id = service.enqueue("steered")
    document = [
        operator.post(f"/v1/jobs/{job_id}:{verb}", json={"reason": "because"}).json()
        for verb in ("hold", "resume", "cancel")
    ]
    assert [one["result"] for one in document] == ["held", "resumed", "cancelled"]

    again = operator.post(f"/v1/jobs/{job_id}:cancel")

    assert (again.status_code, again.json()["code"]) == (409, "wrong-state")
    changes = operator.get("/v1/audit", params={"target": f"job:{job_id}"}).json()["changes"]
    assert [(one["action"], one["reason"]) for one in changes[:3]] == [
        ("cancel", "because"),
        ("resume", "because"),
        ("hold", "because"),
    ]
    assert {one["actor"] for one in changes} == {"token:1:first"}


def test_a_dead_letter_is_retried(service: Service, operator: httpx.Client) -> None:
    """Shows R15."""
    job_id = service.enqueue("dead", max_attempts=1)
    request = {"queues": ["dead"], "worker": {"name": "here"}}
    [job] = operator.post("/v1/leases:acquire", json=request).json()["jobs"]
    operator.post(
        "/v1/leases:fail", json={"lease": job["lease"], "error": {"type": "Oops", "message": "no"}}
    )
    assert operator.get(f"/v1/jobs/{job_id}").json()["state"] == "failed"

    answer = operator.post(f"/v1/jobs/{job_id}:retry")

    assert answer.json() == {"result": "retried"}
    assert operator.get(f"/v1/jobs/{job_id}").json()["state"] == "queued"


@pytest.mark.parametrize("job_id", ["0", "9223372036854775808", "-1", "x", "1" * 300, "%00", "١"])
def test_invalid_id_is_not_found(operator: httpx.Client, job_id: str) -> None:
    answer = operator.get(f"/v1/jobs/{job_id}")

    assert (answer.status_code, answer.json()["code"]) == (404, "not-found")


def test_what_payload_read_is_for_is_hidden_without_it(
    service: Service, operator: httpx.Client
) -> None:
    job_id = service.enqueue("secret", args={"card": "4711-0815"}, key="4711-0815-key")
    with service.caller("read") as reader:
        whole = reader.get(f"/v1/jobs/{job_id}")
        listed = reader.get("/v1/jobs", params={"state": "queued", "queue": "secret"})
        items = reader.get(f"/v1/jobs/{job_id}/items")

    assert whole.json()["payload"] is False
    assert "4711" not in whole.text + listed.text
    assert items.status_code == 403
    assert operator.get(f"/v1/jobs/{job_id}").json()["args"] == {"card": "4711-0815"}


def test_a_secret_field_is_hidden_from_everybody(service: Service, operator: httpx.Client) -> None:
    job_id = service.enqueue("redacted", args={"user": "ada", "password": "hunter2!"})

    shown = operator.get(f"/v1/jobs/{job_id}")

    assert shown.json()["args"]["user"] == "ada"
    assert "hunter2" not in shown.text


def test_job_of_another_team_is_not_found(service: Service) -> None:
    job_id = service.enqueue("theirs")
    with service.caller("read", "operate", queues=("ours.*",)) as ours:
        shown = ours.get(f"/v1/jobs/{job_id}")
        cancelled = ours.post(f"/v1/jobs/{job_id}:cancel")
        listed = ours.get("/v1/jobs", params={"state": "queued"})

    assert (shown.status_code, cancelled.status_code) == (404, 404)
    assert job_id not in {job["id"] for job in listed.json()["jobs"]}


def test_taken_port_is_refused_before_anything_starts(service: Service) -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "tenure", "server", "--port", service.url.rpartition(":")[2]],
        env=os.environ | {"TENURE_DATABASE_URL": service.database},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert ended.returncode != 0
    assert "choose another with --host or --port" in ended.stderr
    assert "tnr_" not in ended.stderr + ended.stdout
