"""Tenants with tokens for their own queues do not reach, count or block each other."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from support.processes import wait_for
from tenure.admin import By
from tenure.config import FOREVER

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.server.conftest import Service

OPS = By("ops")


@contextmanager
def tenant(service: Service, *scopes: str, queue: str, **options: Any) -> Iterator[httpx.Client]:
    made = service.admin.tokens.create("tenant", OPS, scopes=scopes, queues=[queue], **options)
    headers = {"Authorization": f"Bearer {made.secret}"}
    with httpx.Client(base_url=service.url, headers=headers, timeout=30) as client:
        yield client


def job(queue: str, **options: Any) -> dict[str, Any]:
    return {"task": "billing.charge", "args": {"n": 1}, "queue": queue} | options


def code(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json().get("code", "")


# Keys


def test_a_key_that_a_foreign_job_holds_is_a_conflict_without_its_id(service: Service) -> None:
    """The attack: enqueue with a guessed key, so that the victim's job is never made."""
    with (
        tenant(service, "enqueue", queue="squat.*") as attacker,
        tenant(service, "enqueue", queue="victim") as victim,
    ):
        made = attacker.post("/v1/jobs", json=job("squat.q", key="invoice-7"))
        assert made.status_code == 201
        refused = victim.post("/v1/jobs", json=job("victim", key="invoice-7"))
        batch = [job("victim"), job("victim", key="invoice-7")]
        whole = victim.post("/v1/jobs:batch", json={"jobs": batch})
        again = attacker.post("/v1/jobs", json=job("squat.q", key="invoice-7"))

    assert code(refused) == code(whole) == (409, "key-held-elsewhere")
    assert made.json()["id"] not in refused.text
    assert again.json() == {"id": made.json()["id"], "created": False}
    assert service.admin.jobs.search("queue:victim").jobs == []


def test_an_operator_frees_a_key_once_its_job_has_ended(service: Service) -> None:
    with service.caller() as operator, tenant(service, "operate", queue="free") as narrow:
        held = service.enqueue("free", task="t", key="k", key_for=1000)
        body = {"task": "t", "key": "k", "reason": "squatted"}
        assert narrow.post("/v1/keys:free", json=body).status_code == 403
        live = operator.post("/v1/keys:free", json=body)
        assert code(live) == (409, "wrong-state")
        assert f"job {held}" in live.json()["detail"]
        operator.post(f"/v1/jobs/{held}:cancel", json={})
        assert operator.post("/v1/keys:free", json=body).json() == {"result": "freed"}
        assert code(operator.post("/v1/keys:free", json=body)) == (404, "not-found")
    assert service.enqueue("free", task="t", key="k") != held
    [row] = service.admin.audit.list("task:t", count=1)
    assert (row.action, row.reason) == ("key.free", "squatted")
    assert row.before == {"key": "k", "job": int(held)}


def test_key_for_is_capped_by_the_token(service: Service) -> None:
    century = 100 * 365 * 86_400
    with (
        tenant(service, "enqueue", queue="keys") as plain,
        tenant(service, "enqueue", queue="keys", quotas={"key_for": 60}) as short,
        tenant(service, "enqueue", queue="keys", quotas={"key_for": century}) as long,
    ):
        assert code(plain.post("/v1/jobs", json=job("keys", key="a", key_for=century)))[0] == 422
        assert code(short.post("/v1/jobs", json=job("keys", key="b", key_for=61)))[0] == 422
        assert short.post("/v1/jobs", json=job("keys", key="b", key_for=60)).status_code == 201
        assert long.post("/v1/jobs", json=job("keys", key="a", key_for=century)).status_code == 201
        forever = job("keys", key="c", key_for="forever")
        refused = short.post("/v1/jobs", json=forever)
        assert code(refused) == (422, "invalid")
        assert "at most 60 s" in refused.json()["detail"]
        assert long.post("/v1/jobs", json=forever).status_code == 201
        assert code(long.post("/v1/jobs", json=job("keys", key="d", key_for="ever")))[0] == 422


def test_a_key_kept_forever_is_taken_after_its_job(service: Service) -> None:
    """Shows R17."""
    forever = job("forever", key="k", key_for="forever")
    quotas = {"key_for": FOREVER.total_seconds()}
    with tenant(service, "enqueue", "operate", queue="forever", quotas=quotas) as client:
        made = client.post("/v1/jobs", json=forever).json()
        client.post(f"/v1/jobs/{made['id']}:cancel", json={})
        assert client.post("/v1/jobs", json=forever).json() == {"id": made["id"], "created": False}


# Task names


def test_token_limited_to_tasks_enqueues_no_others(service: Service) -> None:
    scopes = ("enqueue", "operate", "read", "admin")
    with tenant(service, *scopes, queue="*", tasks=["mail.*"]) as client:
        other = job("tasks")
        assert code(client.post("/v1/jobs", json=other)) == (403, "forbidden")
        batch = {"jobs": [job("tasks", task="mail.send"), other]}
        assert code(client.post("/v1/jobs:batch", json=batch)) == (403, "forbidden")
        schedule = {"name": "tasks", "task": "billing.charge", "every": 60, "queue": "tasks"}
        assert code(client.post("/v1/schedules", json=schedule)) == (403, "forbidden")
        mine = client.post("/v1/schedules", json=schedule | {"task": "mail.send"})
        assert mine.status_code == 201
        change = client.patch("/v1/schedules/tasks", json={"task": "billing.charge"})
        assert code(change) == (403, "forbidden")
        assert client.post("/v1/jobs", json=job("tasks", task="mail.send")).status_code == 201
        wider = {"name": "wider", "scopes": ["enqueue"]}
        assert code(client.post("/v1/tokens", json=wider)) == (403, "forbidden")
        child = client.post("/v1/tokens", json=wider | {"tasks": ["mail.send"]})
        assert child.json()["token"]["tasks"] == ["mail.send"]


# Lists


def test_paging_tells_nothing_of_other_queues(service: Service) -> None:
    """The attack: count the victim's jobs by the pages of an empty list."""
    for _ in range(5):
        service.enqueue("paged.victim", task="paged.task", tags=["vtag"])
    own = service.enqueue("paged.own", task="paged.task")
    service.admin.schedules.create("paged", "t", OPS, every=60, queue="paged.victim")
    filters = [{"filter": "task:paged.task"}, {"filter": "tag:vtag"}, {"state": "queued"}]
    with tenant(service, "read", queue="paged.own") as spy, service.caller() as operator:
        ids = ",".join(str(int(own) - n) for n in range(6))
        for params in [*filters, {"filter": f"id:{ids}"}]:
            page = spy.get("/v1/jobs", params=params | {"page_size": 2}).json()
            assert [one["id"] for one in page["jobs"]] == [own] * ("vtag" not in str(params))
            assert page["next_page_token"] is None
            if page["search"] is not None:
                assert page["search"]["searched"] == len(page["jobs"])
        started = {"kind": "cancel", "dry_run": False}
        for queue in ("paged.victim", "paged.victim", "paged.own"):
            wanted = {"state": "queued", "queue": queue, "task": "none"}
            operator.post("/v1/operations", json=started | {"filter": wanted})
        page = spy.get("/v1/operations", params={"page_size": 2}).json()
        assert len(page["operations"]) == 1
        assert page["next_page_token"] is None
        assert spy.get("/v1/schedules", params={"page_size": 1}).json()["schedules"] == []


def test_page_token_is_bound_to_its_access_token_and_filter(service: Service) -> None:
    newest = [service.enqueue("sealed") for _ in range(3)][-1]
    with service.caller() as one, service.caller("read") as other:
        params: dict[str, Any] = {"filter": "queue:sealed", "page_size": 1}
        page = one.get("/v1/jobs", params=params).json()
        token = page["next_page_token"]
        assert page["jobs"][0]["id"] == newest
        second = one.get("/v1/jobs", params=params | {"page_token": token}).json()
        assert second["jobs"][0]["id"] == str(int(newest) - 1)
        changed = token[:-2] + ("AA" if token[-2:] != "AA" else "BB")
        refused = [
            other.get("/v1/jobs", params=params | {"page_token": token}),
            one.get("/v1/jobs", params={"filter": "queue:other", "page_token": token}),
            one.get("/v1/jobs", params={"state": "queued", "page_token": token}),
            one.get("/v1/operations", params={"page_token": token}),
            *(one.get("/v1/jobs", params=params | {"page_token": t}) for t in (changed, "1", "é")),
        ]
    assert [code(answer) for answer in refused] == [(422, "invalid")] * len(refused)


def test_error_signature_of_an_operation_needs_payload_read(service: Service) -> None:
    wanted = {"state": "failed", "queue": "signed", "signature": "E: secret"}
    body = {"kind": "retry", "filter": wanted, "dry_run": True}
    with (
        tenant(service, "operate", queue="signed") as blind,
        tenant(service, "operate", "payload:read", queue="signed") as reader,
    ):
        assert code(blind.post("/v1/operations", json=body)) == (403, "forbidden")
        assert reader.post("/v1/operations", json=body).status_code == 201


def test_a_shared_worker_shows_only_the_callers_queues(service: Service) -> None:
    with tenant(service, "work", queue="*") as worker:
        me = {"name": "shared", "language": "none"}
        queues = ["shared.mine", "shared.theirs"]
        worker.post("/v1/leases:acquire", json={"queues": queues, "worker": me})
    with tenant(service, "read", queue="shared.mine") as reader:

        def mine() -> list[dict[str, Any]]:
            rows: list[dict[str, Any]] = reader.get("/v1/workers").json()["workers"]
            return rows

        assert wait_for(lambda: bool(mine()), 10)
        assert [one["queues"] for one in mine()] == [["shared.mine"]]
        assert "shared.theirs" not in reader.get("/v1/workers").text


# Names and sessions


def test_names_that_a_worker_invents_are_not_known_queues(service: Service) -> None:
    """The attack: 100 made-up queue names with each acquire."""
    names = [f"invented.{n}" for n in range(100)]
    me = {"name": "inventor", "language": "none"}
    with (
        tenant(service, "work", queue="invented.*") as attacker,
        tenant(service, "work", queue="named") as honest,
        service.caller() as operator,
    ):
        for queues, client in ((names, attacker), (["named"], honest)):
            answer = client.post("/v1/leases:acquire", json={"queues": queues, "worker": me})
            assert answer.status_code == 200, answer.text

        def known() -> set[str]:
            return {one["name"] for one in operator.get("/v1/queues").json()["queues"]}

        def both_registered() -> bool:
            rows = service.admin.workers.list()
            return sum(row.name == "inventor" for row in rows) == 2

        assert wait_for(both_registered, 10)
        assert wait_for(lambda: "named" in known(), 15)
        assert not known() & set(names)


def test_sessions_and_queue_names_of_a_token_are_capped(service: Service) -> None:
    quotas = {"sessions": 2, "queue_names": 3}
    with tenant(service, "work", "enqueue", queue="cap.*", quotas=quotas) as client:
        body = {"queues": ["cap.1"], "worker": {"name": "w"}}
        session = client.post("/v1/leases:acquire", json=body).json()["session"]
        assert client.post("/v1/leases:acquire", json=body).status_code == 200
        third = client.post("/v1/leases:acquire", json=body)
        assert code(third) == (429, "quota-exceeded")
        assert int(third.headers["retry-after"]) >= 1
        again = client.post("/v1/leases:acquire", json=body | {"session": session})
        assert again.status_code == 200
        many = body | {"queues": ["cap.2", "cap.3", "cap.4"], "session": session}
        assert code(client.post("/v1/leases:acquire", json=many)) == (429, "quota-exceeded")
        jobs = {"jobs": [job(f"cap.{n}") for n in range(4)]}
        assert code(client.post("/v1/jobs:batch", json=jobs)) == (429, "quota-exceeded")


# Quotas


def test_live_jobs_quota_of_a_token_refuses_with_the_reason(service: Service) -> None:
    with tenant(service, "enqueue", queue="live.*", quotas={"live_jobs": 3}) as client:
        batch = {"jobs": [job(f"live.{n}") for n in range(3)]}
        assert client.post("/v1/jobs:batch", json=batch).status_code == 201
        refused = client.post("/v1/jobs", json=job("live.1"))
        assert code(refused) == (429, "quota-exceeded")
        assert "live_jobs" in refused.json()["detail"]
        assert int(refused.headers["retry-after"]) >= 1
        for one in service.admin.jobs.search("queue:live.1").jobs:
            service.admin.jobs.cancel([one.id], OPS)
        # The next estimate sees that a job has ended.
        assert wait_for(lambda: client.post("/v1/jobs", json=job("live.1")).status_code == 201, 15)


def test_quotas_of_a_queue_hold_for_every_token(service: Service) -> None:
    with service.caller() as operator:
        body = {"quotas": {"payload_bytes": 1000, "enqueue_rate": 5}, "reason": "tenant"}
        row = operator.post("/v1/queues/bytes:quota", json=body).json()
        assert row["quotas"] == body["quotas"]
        with tenant(service, "admin", queue="bytes") as narrow:
            assert narrow.post("/v1/queues/bytes:quota", json=body).status_code == 403

        large = operator.post("/v1/jobs", json=job("bytes", args={"s": "x" * 2000}))
        assert code(large) == (429, "quota-exceeded")
        assert "payload_bytes" in large.json()["detail"]
        small = {"jobs": [job("bytes", args={"n": n}) for n in range(20)]}
        assert operator.post("/v1/jobs:batch", json=small).status_code == 201
        late = operator.post("/v1/jobs", json=job("bytes"))
        assert code(late) == (429, "quota-exceeded")
        assert "5 jobs a second" in late.json()["detail"]
        listed = operator.get("/v1/queues").json()["queues"]
        assert next(one for one in listed if one["name"] == "bytes")["quotas"] == body["quotas"]
    assert service.admin.audit.list("queue:bytes", count=1)[0].action == "queue.quota"


def test_quotas_of_a_token_are_changed_and_inherited(service: Service) -> None:
    made = service.admin.tokens.create("q", OPS, scopes=["admin"], quotas={"live_jobs": 7})
    with service.caller() as operator:
        place = f"/v1/tokens/{made.token.id}:quota"
        bad = operator.post(place, json={"quotas": {"no_such": 1}})
        assert code(bad) == (422, "invalid")
        changed = operator.post(place, json={"quotas": {"live_jobs": 5}})
        assert changed.json() == {"result": "changed"}
        assert operator.post("/v1/tokens/999999:quota", json={"quotas": {}}).status_code == 404
    headers = {"Authorization": f"Bearer {made.secret}"}
    wanted = {"name": "child", "scopes": ["read"], "quotas": {"live_jobs": 50, "sessions": 2}}
    child = httpx.post(f"{service.url}/v1/tokens", headers=headers, json=wanted).json()["token"]
    assert child["quotas"] == {"live_jobs": 5, "sessions": 2}


@pytest.mark.parametrize("quota", [{"live_jobs": -1}, {"live_jobs": "many"}, {"": 1}])
def test_invalid_quota_is_refused(service: Service, quota: dict[str, Any]) -> None:
    with service.caller() as operator:
        answer = operator.post("/v1/queues/any:quota", json={"quotas": quota})
    assert code(answer) == (422, "invalid")
