"""The worker protocol over HTTP, against a real server process."""

from __future__ import annotations

import socket
import threading
import time
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import httpx
import psycopg
import pytest

from tenure.admin import By
from tenure.worker.observability import open_socket

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.server.conftest import Service

ME = {"name": "here", "language": "none"}


@pytest.fixture
def worker(service: Service) -> Iterator[httpx.Client]:
    with service.caller("work") as worker:
        yield worker


def acquire(worker: httpx.Client, queue: str, **given: Any) -> dict[str, Any]:
    answer = worker.post("/v1/leases:acquire", json={"queues": [queue], "worker": ME} | given)
    assert answer.status_code == 200, answer.text
    whole: dict[str, Any] = answer.json()
    return whole


def say(worker: httpx.Client, verb: str, lease: str, **given: Any) -> httpx.Response:
    return worker.post(f"/v1/leases:{verb}", json={"lease": lease} | given)


def test_a_job_is_acquired_renewed_and_completed(service: Service, worker: httpx.Client) -> None:
    """Shows R32. Shows R16."""
    job_id = service.enqueue("whole")

    [job] = acquire(worker, "whole")["jobs"]
    assert (job["id"], job["args"], job["attempt"]) == (job_id, {"n": 1}, 1)
    assert 25_000 < job["expires_in_ms"] <= 30_000
    assert job["idempotency_key"].startswith(f"tenure-{job_id}-")
    assert job["renew_in_ms"] == job["expires_in_ms"] // 3
    renewed = worker.post("/v1/leases:renew", json={"leases": [job["lease"]]}).json()
    assert renewed["leases"][0]["answer"] == "renewed"
    done = say(worker, "complete", job["lease"], result={"sum": 3}, log="a line")

    assert done.json() == {"answer": "settled", "state": "completed", "late": False}
    with service.caller() as operator:
        assert operator.get(f"/v1/jobs/{job_id}").json()["result"] == {"sum": 3}
        [attempt] = operator.get(f"/v1/jobs/{job_id}/attempts").json()["attempts"]
    assert (attempt["outcome"], attempt["log"]) == ("completed", "a line")


PARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


@pytest.mark.parametrize(
    ("parent", "state", "carried"),
    [
        (PARENT, "shop=1", (PARENT, "shop=1")),
        (PARENT, None, (PARENT, None)),
        (PARENT, "x" * 513, (PARENT, None)),
        (f"00-{'0' * 32}-00f067aa0ba902b7-01", "shop=1", (None, None)),
        ("drop table", None, (None, None)),
        (None, "shop=1", (None, None)),
    ],
)
def test_the_trace_of_who_enqueues_comes_to_who_works(
    service: Service,
    worker: httpx.Client,
    parent: str | None,
    state: str | None,
    carried: tuple[str | None, str | None],
) -> None:
    """One that cannot be read is left out, and refuses nothing."""
    sent = {"traceparent": parent, "tracestate": state}
    with service.caller() as caller:
        answer = caller.post(
            "/v1/jobs",
            json={"task": "task", "queue": "traced"},
            headers={name: text for name, text in sent.items() if text is not None},
        )
    [job] = acquire(worker, "traced")["jobs"]
    assert job["id"] == answer.json()["id"]
    assert (job["traceparent"], job["tracestate"]) == carried
    say(worker, "complete", job["lease"])


def test_trace_does_not_change_the_idempotency_fingerprint(service: Service) -> None:
    """A client that sends a request again is in another span by then."""
    with service.caller() as caller:
        answers = [
            caller.post(
                "/v1/jobs",
                json={"task": "task", "queue": "traced-again"},
                headers={"Idempotency-Key": "once", "traceparent": PARENT.replace("b7", last)},
            )
            for last in ("b7", "b8")
        ]
    assert [answer.status_code for answer in answers] == [201, 201]
    assert answers[0].json()["id"] == answers[1].json()["id"]


def test_who_waits_is_answered_when_there_is_a_job(service: Service, worker: httpx.Client) -> None:
    found: list[dict[str, Any]] = []
    waiting = threading.Thread(target=lambda: found.append(acquire(worker, "waited", wait=20)))
    waiting.start()
    time.sleep(0.3)
    assert not found

    job_id = service.enqueue("waited")

    waiting.join(10)
    assert [job["id"] for job in found[0]["jobs"]] == [job_id]


def test_a_lost_lease_is_a_conflict(service: Service, worker: httpx.Client) -> None:
    """Shows R5."""
    job_id = service.enqueue("lost")
    [job] = acquire(worker, "lost")["jobs"]
    with service.caller() as operator:
        assert operator.post(f"/v1/jobs/{job_id}:revoke").json() == {"result": "revoked"}

    for verb, values in (
        ("complete", {"result": 1}),
        ("fail", {"error": {"type": "Oops"}}),
        ("release", {}),
        ("progress", {"done": 1}),
    ):
        answer = say(worker, verb, job["lease"], **values)
        assert (answer.status_code, answer.json()["code"]) == (409, "lease-lost"), verb


def test_a_lease_is_worth_nothing_with_another_token(
    service: Service, worker: httpx.Client
) -> None:
    service.enqueue("mine")
    [job] = acquire(worker, "mine")["jobs"]

    with service.caller("work") as other:
        stolen = say(other, "complete", job["lease"], result="stolen")

    assert (stolen.status_code, stolen.json()["code"]) == (409, "lease-lost")
    assert say(worker, "complete", job["lease"], result="mine").status_code == 200


def test_a_failure_is_retried_as_it_says(service: Service, worker: httpx.Client) -> None:
    """Shows R15."""
    error = {"type": "Oops", "message": "no luck", "trace": "line 1"}
    ends = []
    for values in ({}, {"retry": "never"}, {"retry": "after", "after": 3600}):
        service.enqueue("failing")
        [job] = acquire(worker, "failing")["jobs"]
        ends.append(say(worker, "fail", job["lease"], error=error, **values).json()["state"])

    assert ends == ["queued", "failed", "queued"]


def test_a_report_reaches_the_target(service: Service, worker: httpx.Client) -> None:
    """Shows R21. Shows R22. Shows R23."""
    service.enqueue("reports", target=2)
    [job] = acquire(worker, "reports")["jobs"]
    first = say(worker, "progress", job["lease"], cursor={"page": 2}, items={"a": 1}).json()
    say(worker, "release", job["lease"])
    [again] = acquire(worker, "reports")["jobs"]

    second = say(worker, "progress", again["lease"], items={"a": 1, "b": 2}).json()

    assert (first["items"], first["reached"], again["cursor"]) == (1, False, {"page": 2})
    assert (second["items"], second["added"], second["reached"]) == (2, 1, True)


def expires_in(service: Service, job_id: str) -> float:
    [lease] = [one for one in service.admin.jobs.leases() if str(one.job_id) == job_id]
    return lease.remaining.total_seconds()


def test_an_acquire_names_the_lease(service: Service, worker: httpx.Client) -> None:
    """For each of its jobs and their renewals, whatever a job says itself. Shows R8."""
    ids = [service.enqueue("leased", lease=20), service.enqueue("leased")]
    jobs = acquire(worker, "leased", lease=90.5, count=2)["jobs"]
    assert sorted(job["id"] for job in jobs) == sorted(ids)
    assert all(85_000 < job["expires_in_ms"] <= 90_500 for job in jobs)
    assert all(job["renew_in_ms"] == job["expires_in_ms"] // 3 for job in jobs)
    with psycopg.connect(service.database, autocommit=True) as connection:
        connection.execute(
            "UPDATE tenure.job SET lease_expires_at = now() + interval '9 s' WHERE queue = 'leased'"
        )
    worker.post("/v1/leases:renew", json={"leases": [job["lease"] for job in jobs]})
    assert all(85 < expires_in(service, job_id) <= 90.5 for job_id in ids)


@pytest.mark.parametrize(
    ("lease", "words"),
    [(3, "lease must be longer, got 3 s"), (90_000, "at most 1 day"), ("long", ""), (-1, "")],
)
def test_an_acquire_with_a_lease_out_of_range_is_refused(
    service: Service, worker: httpx.Client, lease: object, words: str
) -> None:
    """Shows R8."""
    job_id = service.enqueue("unleased")
    body = {"queues": ["unleased"], "worker": ME, "lease": lease}
    refused = worker.post("/v1/leases:acquire", json=body)
    assert (refused.status_code, refused.json()["code"]) == (422, "invalid")
    assert words in refused.json()["detail"]
    with service.caller() as operator:
        assert operator.get(f"/v1/jobs/{job_id}").json()["state"] == "queued"


def test_a_report_extends_the_lease_by_what_it_names(
    service: Service, worker: httpx.Client
) -> None:
    """The next renewal leaves it as it is. Shows R21."""
    job_id = service.enqueue("extended")
    [job] = acquire(worker, "extended")["jobs"]
    assert say(worker, "progress", job["lease"], done=1, extend=600).status_code == 200
    renewed = worker.post("/v1/leases:renew", json={"leases": [job["lease"]]}).json()
    assert renewed["leases"][0]["answer"] == "renewed"
    assert 590 < expires_in(service, job_id) <= 600
    refused = say(worker, "progress", job["lease"], extend=100_000)
    assert (refused.status_code, refused.json()["code"]) == (422, "invalid")
    assert "extend must be positive and at most 1 day" in refused.json()["detail"]


def test_a_completion_carries_the_last_items(service: Service, worker: httpx.Client) -> None:
    """In one request, which may be repeated. Shows R23."""
    job_id = service.enqueue("last-items")
    [job] = acquire(worker, "last-items")["jobs"]
    say(worker, "progress", job["lease"], cursor=1, items={"a": 1})
    end = {
        "result": {"pages": 2},
        "reason": "no_more_results",
        "cursor": 2,
        "items": {"a": 9, "b": 2},
        "log": "the end",
    }
    assert say(worker, "complete", job["lease"], **end).json()["answer"] == "settled"
    assert say(worker, "complete", job["lease"], **end).json()["answer"] == "repeated"
    with service.caller() as operator:
        done = operator.get(f"/v1/jobs/{job_id}").json()
        items = operator.get(f"/v1/jobs/{job_id}/items").json()["items"]
    assert (done["state"], done["done_reason"]) == ("completed", "no_more_results")
    assert (done["result"], done["cursor"], done["items"]) == ({"pages": 2}, 2, 2)
    assert items == {"a": 1, "b": 2}


def test_a_lost_lease_completes_nothing_and_leaves_no_items(
    service: Service, worker: httpx.Client
) -> None:
    """Shows R4."""
    job_id = service.enqueue("lost-items")
    [job] = acquire(worker, "lost-items")["jobs"]
    with service.caller() as operator:
        operator.post(f"/v1/jobs/{job_id}:revoke", json={})
        lost = say(worker, "complete", job["lease"], items={"a": 1})
        assert (lost.status_code, lost.json()["code"]) == (409, "lease-lost")
        assert operator.get(f"/v1/jobs/{job_id}/items").json()["items"] == {}


def test_the_settings_backoff_is_enforced(service: Service, worker: httpx.Client) -> None:
    """A worker cannot ask for a shorter wait. Shows R38."""
    job_id = service.enqueue("enforced")
    by = By("ops")
    service.admin.settings.set("backoff_enforced", True, by)
    service.admin.settings.set("backoff_base", 500, by)
    try:
        [job] = acquire(worker, "enforced")["jobs"]
        error = {"type": "Busy"}
        say(worker, "fail", job["lease"], error=error, retry="after", after=1)
    finally:
        service.admin.settings.reset("backoff_enforced", by)
        service.admin.settings.reset("backoff_base", by)
    found = service.admin.jobs.get(int(job_id))
    [attempt] = service.admin.jobs.attempts(int(job_id))
    assert found is not None
    assert found.run_at - attempt.ended_at == timedelta(seconds=500)


def test_many_leases_end_in_one_request(service: Service, worker: httpx.Client) -> None:
    for _ in range(3):
        service.enqueue("many")
    jobs = acquire(worker, "many", count=10)["jobs"]
    endings = [
        {"complete": {"lease": jobs[0]["lease"], "result": 1}},
        {"fail": {"lease": jobs[1]["lease"], "error": {"type": "Oops"}, "retry": "never"}},
        {"release": {"lease": jobs[2]["lease"]}},
    ]

    answer = worker.post("/v1/leases:settle", json={"endings": endings}).json()

    assert [one["state"] for one in answer["endings"]] == ["completed", "failed", "queued"]


def test_what_was_acquired_for_a_client_that_is_gone_is_given_back(
    service: Service, worker: httpx.Client
) -> None:
    with pytest.raises(httpx.ReadTimeout):
        worker.post(
            "/v1/leases:acquire",
            json={"queues": ["gone"], "worker": ME, "wait": 20},
            timeout=0.5,
        )
    job_id = service.enqueue("gone")

    [job] = acquire(worker, "gone", wait=15)["jobs"]

    assert (job["id"], job["attempt"]) == (job_id, 1)


@pytest.mark.parametrize("lease", ["", "5", "tl_" + "A" * 51, "tl_x", "x" * 201])
def test_a_forged_lease_is_refused(worker: httpx.Client, lease: str) -> None:
    answer = say(worker, "complete", lease, result=1)

    assert answer.status_code in (409, 422)


def test_a_queue_that_the_token_does_not_allow_is_forbidden(service: Service) -> None:
    with service.caller("work", queues=("mail.*",)) as worker:
        allowed = worker.post("/v1/leases:acquire", json={"queues": ["mail.out"], "worker": ME})
        refused = worker.post("/v1/leases:acquire", json={"queues": ["bills"], "worker": ME})

    assert (allowed.status_code, refused.status_code) == (200, 403)
    assert refused.json()["code"] == "forbidden"


def test_locked_row_is_settled_again(service: Service, worker: httpx.Client) -> None:
    """A 2xx would be taken for settled, and the result would be gone."""
    job_id = service.enqueue("locked")
    [job] = acquire(worker, "locked")["jobs"]
    with psycopg.connect(service.database) as other:
        other.execute("SELECT FROM tenure.job WHERE id = %s FOR UPDATE", [job_id])
        busy = say(worker, "complete", job["lease"], result=1)

    assert (busy.status_code, busy.json()["code"]) == (503, "database-away")
    assert say(worker, "complete", job["lease"], result=1).json()["answer"] == "settled"


def test_waiting_time_is_reported(service: Service, worker: httpx.Client) -> None:
    """From when the request was sent, plus this, the lease is counted by its holder."""
    began = time.monotonic()
    answer = acquire(worker, "empty", wait=0.5)

    assert 500 <= answer["waited_ms"] <= 1000 * (time.monotonic() - began)


def test_an_answer_does_not_wait_for_an_acknowledgement() -> None:
    """What is accepted has the option of what listens; without it each answer took 40 ms more."""
    with open_socket("127.0.0.1", 0) as on, socket.create_connection(on.getsockname()):
        accepted, _ = on.accept()
        with accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def lost_once(service: Service, job_id: str) -> None:
    """Its worker died under it before."""
    with psycopg.connect(service.database, autocommit=True) as connection:
        connection.execute("UPDATE tenure.job SET suspect = true WHERE id = %s", [int(job_id)])


def test_a_job_says_whether_it_is_a_suspect(service: Service, worker: httpx.Client) -> None:
    job_id = service.enqueue("suspected")
    [job] = acquire(worker, "suspected", holding=0)["jobs"]
    assert job["suspect"] is False
    assert say(worker, "release", job["lease"]).is_success
    lost_once(service, job_id)
    [job] = acquire(worker, "suspected", holding=0)["jobs"]
    assert (job["id"], job["suspect"]) == (job_id, True)


@pytest.mark.parametrize("holding", [-1, "many", 1.5])
def test_a_worker_that_holds_no_number_of_jobs_is_refused(
    worker: httpx.Client, holding: object
) -> None:
    request = {"queues": ["default"], "worker": ME, "holding": holding}
    assert worker.post("/v1/leases:acquire", json=request).status_code == 422
