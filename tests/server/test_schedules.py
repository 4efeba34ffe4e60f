"""Schedules over HTTP, against a real server process."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from support.processes import wait_for
from tenure._model.job import NewJob
from tenure._model.schedule import NewSchedule, Timing
from tenure.admin import By

if TYPE_CHECKING:
    from collections.abc import Iterator

    import httpx

    from tests.server.conftest import Service

OPS = By("ops")


@pytest.fixture
def operator(service: Service) -> Iterator[httpx.Client]:
    with service.caller() as operator:
        yield operator


def make(operator: httpx.Client, name: str, **given: Any) -> dict[str, Any]:
    request = {"name": name, "task": "report", "every": 3600, "queue": "reports"} | given
    answer = operator.post("/v1/schedules", json=request)
    assert answer.status_code == 201, answer.text
    made: dict[str, Any] = answer.json()
    return made


def test_a_schedule_is_made_shown_changed_and_deleted(operator: httpx.Client) -> None:
    """Shows R28."""
    request = {
        "cron": "0 9 * * 1-5",
        "timezone": "Europe/Berlin",
        "args": {"for": "Ada"},
        "missed": "all",
        "missed_within": 7200.0,
        "jitter": 30.0,
        "tags": ["daily"],
    }
    made = make(operator, "morning", every=None, **request, reason="asked for")
    assert {name: made[name] for name in request} == request
    assert (made["state"], made["program"], made["set_here"]) == ("active", None, [])

    shown = operator.get("/v1/schedules/morning").json()
    assert [run["local"][11:16] for run in shown["next_runs"]] == ["09:00"] * 5
    assert shown["next_runs"][0]["fire_at"] == shown["next_at"]
    assert shown["past_runs"] == []

    changed = operator.patch("/v1/schedules/morning", json={"cron": "0 10 * * *", "jitter": 0})
    assert (changed.json()["cron"], changed.json()["version"]) == ("0 10 * * *", 2)
    assert changed.json()["args"] == {"for": "Ada"}

    assert operator.delete("/v1/schedules/morning").json() == {"result": "deleted"}
    assert operator.get("/v1/schedules/morning").status_code == 404
    audit = operator.get("/v1/audit", params={"target": "schedule:morning"}).json()["changes"]
    assert [row["action"] for row in audit] == [
        "schedule.delete",
        "schedule.update",
        "schedule.create",
    ]
    assert (audit[-1]["source"], audit[-1]["reason"]) == ("http", "asked for")


def test_it_is_paused_and_resumed_and_its_next_runs_say_so(operator: httpx.Client) -> None:
    """Shows R28."""
    make(operator, "hourly/one")
    until = (datetime.now(UTC) + timedelta(hours=2, minutes=30)).isoformat()

    paused = operator.post("/v1/schedules/hourly/one:pause", json={"until": until, "reason": "why"})
    assert (paused.json()["state"], paused.json()["paused_reason"]) == ("paused", "why")
    runs = operator.get("/v1/schedules/hourly/one/runs", params={"count": 6}).json()["runs"]
    assert [run["paused"] for run in runs][0::5] == [True, False]

    resumed = operator.post("/v1/schedules/hourly/one:resume").json()
    assert (resumed["state"], resumed["paused_by"]) == ("active", None)


def test_run_now_makes_one_job_per_key(service: Service, operator: httpx.Client) -> None:
    """Shows R28."""
    make(operator, "by-hand", queue="handy", args={"n": 3})
    key = {"Idempotency-Key": "click"}

    first, second = [operator.post("/v1/schedules/by-hand:run", headers=key) for _ in range(2)]
    other = operator.post("/v1/schedules/by-hand:run")

    assert first.status_code == 201
    assert (first.json()["created"], second.json()["created"]) == (True, False)
    assert first.json()["id"] == second.json()["id"] != other.json()["id"]
    job = operator.get(f"/v1/jobs/{first.json()['id']}").json()
    assert (job["task"], job["queue"], job["args"]) == ("report", "handy", {"n": 3})


def test_a_preview_says_what_the_clock_does(operator: httpx.Client) -> None:
    request = {
        "cron": "30 2 * * *",
        "timezone": "Europe/Berlin",
        "after": "2030-03-30T12:00:00Z",
        "count": 2,
    }
    first, second = operator.post("/v1/schedules:preview", json=request).json()["runs"]

    assert (first["local"], first["moved"]) == ("2030-03-31T03:00:00+02:00", True)
    assert first["shift"]["shown"] == "2030-03-31T02:00:00"
    assert (second["local"][11:16], second["shift"]) == ("02:30", None)


def test_invalid_timing_is_refused(operator: httpx.Client) -> None:
    for values in ({"cron": "nonsense"}, {"every": 60, "timezone": "Europe/Berlin"}, {}):
        answer = operator.post("/v1/schedules:preview", json=values)
        assert (answer.status_code, answer.json()["code"]) == (422, "invalid"), answer.text


def test_pages_are_by_name_and_show_what_is_allowed(service: Service) -> None:
    for n in range(5):
        service.admin.schedules.create(f"paged-{n}", "t", OPS, every=60, queue=f"pages.{n % 2}")
    with service.caller("read", queues=("pages.1",)) as some:
        first = some.get("/v1/schedules", params={"page_size": 1}).json()
        place = {"page_size": 1, "page_token": first["next_page_token"]}
        second = some.get("/v1/schedules", params=place).json()
        hidden = some.get("/v1/schedules/paged-0")

    assert [row["name"] for row in first["schedules"]] == ["paged-1"]
    assert [row["name"] for row in second["schedules"]] == ["paged-3"]
    assert second["next_page_token"] is None
    assert hidden.status_code == 404


def test_a_backfill_is_an_operation_that_the_server_does(operator: httpx.Client) -> None:
    """Shows R28."""
    make(operator, "past", queue="past")
    end = datetime.now(UTC).replace(minute=30, second=0, microsecond=0) - timedelta(hours=2)
    ends = {"since": (end - timedelta(hours=3)).isoformat(), "until": end.isoformat()}

    rehearsed = operator.post("/v1/schedules/past:backfill", json=ends | {"dry_run": True})
    assert (rehearsed.status_code, rehearsed.json()["total"]) == (202, 3)
    answer = operator.post("/v1/schedules/past:backfill", json=ends | {"reason": "an outage"})
    assert answer.status_code == 202
    started = answer.json()
    assert (started["kind"], started["schedule"], started["queue"]) == ("backfill", "past", "past")
    place = f"/v1/operations/{started['id']}"
    assert wait_for(lambda: operator.get(place).json()["state"] == "done", 30)

    items = operator.get(f"{place}/items").json()["items"]
    assert [item["outcome"] for item in items] == ["fired"] * 3
    first = operator.get("/v1/schedules/past/ticks", params={"page_size": 2}).json()
    token = {"page_token": first["next_page_token"]}
    rest = operator.get("/v1/schedules/past/ticks", params=token).json()
    ticks = first["ticks"] + rest["ticks"]
    assert [tick["job_id"] for tick in ticks] == [item["job_id"] for item in items][::-1]
    assert (ticks[0]["reason"], rest["next_page_token"]) == ("backfill", None)
    assert operator.get("/v1/schedules/past").json()["past_runs"] == ticks


def test_arguments_are_payload_and_secrets_are_never_shown(
    service: Service, operator: httpx.Client
) -> None:
    make(operator, "secretive", args={"to": "Ada", "password": "open sesame"})
    with service.caller("read") as reader:
        hidden = reader.get("/v1/schedules/secretive")
    assert (hidden.json()["payload"], hidden.json()["args"]) == (False, None)
    assert "Ada" not in hidden.text
    shown = operator.get("/v1/schedules/secretive").json()
    assert shown["args"] == {"to": "Ada", "password": "<redacted>"}


def test_what_a_schedule_enqueues_needs_the_right_to_enqueue(service: Service) -> None:
    request = {"name": "mine", "task": "t", "every": 60, "queue": "mine"}
    with (
        service.caller("operate", queues=("mine",)) as half,
        service.caller("operate", "enqueue", queues=("mine",)) as whole,
    ):
        assert half.post("/v1/schedules", json=request).status_code == 403
        assert whole.post("/v1/schedules", json=request).status_code == 201
        assert half.patch("/v1/schedules/mine", json={"args": {"n": 1}}).status_code == 403
        assert half.patch("/v1/schedules/mine", json={"jitter": 5}).status_code == 200
        assert whole.patch("/v1/schedules/mine", json={"queue": "theirs"}).status_code == 403


def test_what_code_declares_code_owns(service: Service, operator: httpx.Client) -> None:
    new = NewSchedule(name="nightly", timing=Timing(cron="0 3 * * *"), job=NewJob("sweep"))
    service.admin._run(service.admin._store.schedules.declare("shop", [1], [new]))

    refused = operator.patch("/v1/schedules/nightly", json={"cron": "0 4 * * *"})
    kept = operator.delete("/v1/schedules/nightly")
    allowed = operator.patch("/v1/schedules/nightly", json={"missed": "skip"})
    back = operator.patch("/v1/schedules/nightly", json={"missed": "declared"})

    assert [each.status_code for each in (refused, kept)] == [422, 422]
    assert "in the code" in refused.json()["detail"]
    assert (allowed.json()["missed"], allowed.json()["set_here"]) == ("skip", ["missed"])
    assert back.json()["set_here"] == []
