"""Edit, retry with other arguments, and run again over HTTP: who may, and what is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from support.serving import OPS

if TYPE_CHECKING:
    from collections.abc import Iterator

    import httpx

    from tests.server.conftest import Service

EDITOR = ("operate", "enqueue")


@pytest.fixture
def operator(service: Service) -> Iterator[httpx.Client]:
    with service.caller() as operator:
        yield operator


def dead(service: Service, queue: str, **options: Any) -> str:
    job_id = service.enqueue(queue, max_attempts=1, **options)
    end(service, queue, "fail", error={"type": "E", "message": "no"})
    return job_id


def done(service: Service, queue: str, **options: Any) -> str:
    job_id = service.enqueue(queue, **options)
    end(service, queue, "complete", result=7)
    return job_id


def end(service: Service, queue: str, how: str, **report: Any) -> None:
    with service.caller() as worker:
        body = {"queues": [queue], "worker": {"name": "here"}}
        [job] = worker.post("/v1/leases:acquire", json=body).json()["jobs"]
        sent = worker.post(f"/v1/leases:{how}", json={"lease": job["lease"], **report})
        assert sent.is_success, sent.text


def code(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["code"]


def test_a_job_is_created_seen_edited_held_cancelled_retried_and_run_again(
    service: Service, operator: httpx.Client
) -> None:
    """Shows R36."""
    body = {"task": "mail.send", "queue": "whole", "args": {"to": "ad"}, "max_attempts": 1}
    place = f"/v1/jobs/{operator.post('/v1/jobs', json=body).json()['id']}"
    changes = {"args": {"to": "bob"}, "priority": 9, "max_attempts": 1, "tags": ["fixed"]}
    edited = operator.patch(place, json={**changes, "timeout": 5, "reason": "typo"})
    assert (edited.status_code, edited.json()) == (200, {"result": "edited"})
    job = operator.get(place).json()
    assert {name: job[name] for name in changes} == changes
    assert operator.post(f"{place}:hold").json() == {"result": "held"}
    assert operator.post(f"{place}:resume").json() == {"result": "resumed"}

    end(service, "whole", "fail", error={"type": "E", "message": "no such person"})
    body = {"args": {"to": "ada"}, "reason": "it is Ada"}
    assert operator.post(f"{place}:retry", json=body).json() == {"result": "retried"}
    assert operator.get(place).json()["args"] == {"to": "ada"}
    assert operator.post(f"{place}:cancel").json() == {"result": "cancelled"}

    again = operator.post(f"{place}:rerun", json={"reason": "after all"})
    assert (again.status_code, again.json()["result"]) == (201, "enqueued")
    new = operator.get(f"/v1/jobs/{again.json()['id']}").json()
    assert (new["rerun_of"], new["args"], new["state"]) == (job["id"], {"to": "ada"}, "queued")
    assert operator.get(place).json()["state"] == "cancelled"

    params: dict[str, str | int] = {"target": f"job:{job['id']}", "page_size": 20}
    changed = operator.get("/v1/audit", params=params).json()["changes"]
    audited = [(one["action"], one["reason"]) for one in changed if one["action"] != "payload.read"]
    assert audited == [
        ("rerun", "after all"),
        ("cancel", None),
        ("retry", "it is Ada"),
        ("resume", None),
        ("hold", None),
        ("edit", "typo"),
        ("enqueue", None),
    ]
    edit = next(one for one in changed if one["action"] == "edit")
    assert (edit["before"]["args"], edit["after"]["args"]) == ({"to": "ad"}, {"to": "bob"})


def test_arguments_in_the_audit_are_for_readers_of_payloads(service: Service) -> None:
    job_id = service.enqueue("audited", args={"to": "ad"})
    service.admin.jobs.edit([job_id], OPS, args={"to": "ada"}, priority=1)
    with service.caller("read") as reader:
        changes = reader.get("/v1/audit", params={"target": f"job:{job_id}"}).json()["changes"]
    [edit] = [one for one in changes if one["action"] == "edit"]
    assert (edit["before"], edit["after"]) == ({"priority": 5}, {"priority": 1})


@pytest.mark.parametrize("scopes", [("operate",), ("enqueue",), ("read", "payload:read")])
def test_other_arguments_need_operate_and_enqueue(
    service: Service, scopes: tuple[str, ...]
) -> None:
    """Who sets a job's arguments decides what it does, like who enqueues it."""
    queue = f"scoped-{scopes[0].replace(':', '-')}"
    failed, ended = dead(service, queue), done(service, queue)
    queued = service.enqueue(queue)
    args = {"args": {"n": 1}}
    with service.caller(*scopes, queues=(queue,)) as caller:
        refused = [
            caller.patch(f"/v1/jobs/{queued}", json=args),
            caller.post(f"/v1/jobs/{failed}:retry", json=args),
            caller.post(f"/v1/jobs/{ended}:rerun"),
        ]
        assert [code(one) for one in refused] == [(403, "forbidden")] * 3
        plain = caller.patch(f"/v1/jobs/{queued}", json={"priority": 1}).status_code
        assert plain == (200 if scopes == ("operate",) else 403)
    with service.caller(*EDITOR, queues=(queue,)) as caller:
        assert caller.patch(f"/v1/jobs/{queued}", json=args).is_success
        assert caller.post(f"/v1/jobs/{failed}:retry", json=args).is_success
        assert caller.post(f"/v1/jobs/{ended}:rerun").is_success


def test_jobs_of_other_queues_and_tasks_are_out_of_reach(service: Service) -> None:
    ended, job_id = done(service, "theirs"), service.enqueue("theirs")
    with service.caller(*EDITOR, queues=("ours",)) as caller:
        for answer in (
            caller.patch(f"/v1/jobs/{job_id}", json={"priority": 1}),
            caller.patch(f"/v1/jobs/{job_id}", json={"args": {}}),
            caller.post(f"/v1/jobs/{ended}:rerun"),
        ):
            assert code(answer) == (404, "not-found")
    made = service.admin.tokens.create("some", OPS, scopes=EDITOR, tasks=["mail.*"])
    with service.caller() as caller:
        caller.headers["Authorization"] = f"Bearer {made.secret}"
        for answer in (
            caller.patch(f"/v1/jobs/{job_id}", json={"args": {}}),
            caller.post(f"/v1/jobs/{ended}:rerun"),
        ):
            assert code(answer) == (403, "forbidden")
            assert "may not enqueue this task" in answer.json()["detail"]
        assert caller.patch(f"/v1/jobs/{job_id}", json={"priority": 1}).is_success


def test_a_redacted_job_that_is_sent_back_changes_nothing(
    service: Service, operator: httpx.Client
) -> None:
    """The mark would replace the secret."""
    stored = {"to": "ad", "password": "hunter22"}
    job_id = service.enqueue("marked", args=stored)
    args = operator.get(f"/v1/jobs/{job_id}").json()["args"]
    assert args == {"to": "ad", "password": "<redacted>"}

    answer = operator.patch(f"/v1/jobs/{job_id}", json={"args": {**args, "to": "ada"}})

    assert code(answer) == (422, "invalid")
    assert "must not contain <redacted>" in answer.json()["detail"]
    job = service.admin.jobs.get(job_id)
    assert job
    assert job.args == stored


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"args": [1]},
        {"args": {"text": "x" * 300_000}},
        {"priority": 10},
        {"max_attempts": 0},
        {"timeout": 0},
        {"run_at": "soon"},
        {"tags": "one"},
        {"queue": "other"},
    ],
)
def test_an_edit_that_is_not_valid_changes_nothing(
    service: Service, operator: httpx.Client, body: dict[str, Any]
) -> None:
    job_id = service.enqueue("invalid")
    before = operator.get(f"/v1/jobs/{job_id}").json()
    answer = operator.patch(f"/v1/jobs/{job_id}", json=body)
    assert code(answer) == (422, "invalid"), answer.text
    assert operator.get(f"/v1/jobs/{job_id}").json() == before


def test_quotas_apply_to_new_arguments_and_new_jobs(
    service: Service, operator: httpx.Client
) -> None:
    queue = "narrow"
    ended, queued = done(service, queue), service.enqueue(queue, args={"n": 1})
    quotas = {"payload_bytes": 200, "live_jobs": 1}
    assert operator.post(f"/v1/queues/{queue}:quota", json={"quotas": quotas}).is_success
    with service.caller(*EDITOR, queues=(queue,)) as caller:
        large = caller.patch(f"/v1/jobs/{queued}", json={"args": {"text": "x" * 300}})
        assert code(large) == (429, "quota-exceeded")
        assert "payload_bytes" in large.json()["detail"]
        # The queue is at its limit of live jobs, and this is not a new one.
        small = caller.patch(f"/v1/jobs/{queued}", json={"args": {"n": 2}})
        assert small.is_success, small.text
        again = caller.post(f"/v1/jobs/{ended}:rerun")
        assert code(again) == (429, "quota-exceeded")
        assert "live_jobs" in again.json()["detail"]


def test_a_key_held_in_another_queue_is_not_named(service: Service) -> None:
    ended = done(service, "visible", key="one")
    holder = service.enqueue("invisible", key="one")
    with service.caller("read", *EDITOR, queues=("visible",)) as caller:
        answer = caller.post(f"/v1/jobs/{ended}:rerun", json={"keep_key": True})
    assert code(answer) == (409, "key-held-elsewhere")
    assert holder not in answer.json()["detail"].replace(ended, "")
