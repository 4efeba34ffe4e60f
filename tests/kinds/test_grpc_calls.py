"""gRPC work against a real server: results, every status, metadata, deadlines and secrets."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import grpc
import pytest

from tenure import Tenure
from tenure._model.job import State
from tenure.config import DEFAULTS
from tenure.kinds.grpc import channels, schema
from tests.kinds import grpc_shop, grpc_stage
from tests.worker.acts import until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    from support.store import Database
    from tenure._model.job import JobRow
    from tests.kinds.grpc_stage import Stage

PLACE = "shop.Orders/Place"
RETRIED = ["ABORTED", "DEADLINE_EXCEEDED", "RESOURCE_EXHAUSTED", "UNAVAILABLE"]
GIVEN_UP = [
    code.name for code in grpc.StatusCode if code.name not in {*RETRIED, "OK"}
]  # fmt: skip


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with grpc_stage.started(tmp_path_factory.mktemp("grpc")) as stage:
        yield stage


@pytest.fixture(autouse=True)
def configured(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    stage.clear()
    schema.SCHEMAS._schemas.clear()
    configure(monkeypatch, stage.settings())


def configure(monkeypatch: pytest.MonkeyPatch, table: dict[str, Any]) -> None:
    monkeypatch.setenv("TENURE_KINDS_GRPC", json.dumps(table))


@pytest.fixture
async def app(db: Database) -> AsyncIterator[Tenure]:
    app = Tenure(db.url, defaults=DEFAULTS.scaled(0.1))
    async with app.run(kinds=["grpc"]):
        yield app
    await channels.channels().close()
    await app.aclose()


async def ended(app: Tenure, *call: Any, attempts: int = 1, **more: Any) -> JobRow:
    """The job of this call, once it has ended."""
    handle = await app.grpc(*call, **more).using(max_attempts=attempts, timeout=10).aenqueue()
    await handle.wait_async(15)
    row = await handle.aget()
    assert row is not None
    return row


async def error(app: Tenure, *call: Any, **more: Any) -> str:
    """Why the call of this job failed."""
    row = await ended(app, *call, **more)
    assert row.state is State.FAILED
    [attempt] = await app.admin.jobs.aattempts(row.id)
    return f"{attempt.error_type}: {attempt.error_message}"


async def test_the_response_is_the_result_in_protobufs_json_mapping(
    app: Tenure, stage: Stage
) -> None:
    order = {"item": "tea", "number": 7, "placedAt": "2026-01-02T03:04:05Z", "size": "LARGE"}

    row = await ended(app, stage.target(), PLACE, order)

    assert row.state is State.COMPLETED
    assert row.result == {
        "status": "OK",
        "response": {
            "text": "tea placed",
            "number": "7",
            "placedAt": "2026-01-02T03:04:05Z",
            "size": "LARGE",
            "data": "AP8=",
        },
    }


async def test_the_call_carries_the_key_the_fence_and_its_own_metadata(
    app: Tenure, stage: Stage
) -> None:
    call = app.grpc(stage.target(), PLACE, {"item": "once"}, metadata={"x-tenant": "7"})
    handle = await call.using(max_attempts=2).aenqueue()
    await handle.wait_async(20)
    first, second = (request["metadata"] for request in stage.requests(item="once"))

    assert first["idempotency-key"] == second["idempotency-key"]
    assert (first["tenure-attempt"], second["tenure-attempt"]) == ("1", "2")
    assert int(second["tenure-fence"]) > int(first["tenure-fence"])
    assert first["x-tenant"] == "7"
    assert first["user-agent"].startswith("tenure/")


@pytest.mark.parametrize("name", GIVEN_UP)
async def test_other_statuses_give_up(app: Tenure, stage: Stage, name: str) -> None:
    message = {"item": f"status:{name}", "number": 7}

    why = await error(app, stage.target(), PLACE, message, attempts=3)

    assert why == f"GiveUp: {PLACE} on {stage.target()} returned {name}: because of 7"


@pytest.mark.parametrize("name", RETRIED)
async def test_passing_statuses_are_retried(app: Tenure, stage: Stage, name: str) -> None:
    handle = (
        await app.grpc(stage.target(), PLACE, {"item": f"status:{name}:0"})
        .using(max_attempts=2)
        .aenqueue()
    )
    await handle.wait_async(15)

    row = await handle.aget()
    assert row is not None
    assert (row.state, row.attempt) == (State.FAILED, 2)
    assert len(stage.requests(item=f"status:{name}:0")) == 2


async def test_a_server_can_ask_for_a_later_retry_or_for_none(app: Tenure, stage: Stage) -> None:
    later = await app.grpc(stage.target(), PLACE, {"item": "status:UNAVAILABLE:60000"}).aenqueue()
    never = await ended(app, stage.target(), PLACE, {"item": "status:ABORTED:-1"}, attempts=3)
    broken = await ended(app, stage.target(), PLACE, {"item": "status:ABORTED:soon"}, attempts=3)
    [attempt] = await periods(app, later)
    row = await later.aget()

    assert row is not None
    assert (never.state, never.attempt) == (State.FAILED, 1)
    assert (broken.state, broken.attempt) == (State.FAILED, 1)
    assert 50 < (row.run_at - attempt.ended_at).total_seconds() < 65


async def test_the_deadline_is_what_is_left_of_the_timeout(app: Tenure, stage: Stage) -> None:
    await ended(app, stage.target(), PLACE, {"item": "tea"})
    [request] = stage.requests(item="tea")

    assert 5 < request["time_left"] < 10


async def test_a_call_without_a_timeout_has_no_deadline(app: Tenure, stage: Stage) -> None:
    handle = await app.grpc(stage.target(), PLACE, {"item": "tea"}).using(timeout=None).aenqueue()
    await handle.wait_async(15)
    [request] = stage.requests(item="tea")

    # A server reports a very long time for a call without a deadline.
    assert request["time_left"] is None or request["time_left"] > 10**6


async def test_a_slow_server_ends_the_attempt_by_the_deadline(app: Tenure, stage: Stage) -> None:
    call = app.grpc(stage.target(), PLACE, {"item": "slow"}).using(timeout=1, max_attempts=1)
    handle = await call.aenqueue()
    await handle.wait_async(15)
    [attempt] = await periods(app, handle)

    assert "DEADLINE_EXCEEDED" in str(attempt.error_message)
    assert await asyncio.to_thread(stage.has_read, item="cancelled")


async def test_a_cancelled_job_cancels_its_call(app: Tenure, stage: Stage) -> None:
    handle = await app.grpc(stage.target(), PLACE, {"item": "slow"}).aenqueue()
    assert await asyncio.to_thread(stage.has_read, item="slow")

    await app.admin.jobs.acancel([handle.id], grpc_stage.BY)
    await handle.wait_async(15)
    row = await handle.aget()

    assert row is not None
    assert row.state is State.CANCELLED
    assert await asyncio.to_thread(stage.has_read, item="cancelled")


@pytest.mark.parametrize("size", [70_000, 300_000])
async def test_a_response_that_is_too_large_for_a_result_is_omitted(
    app: Tenure, stage: Stage, size: int
) -> None:
    """The call has succeeded, so the job does too: a retry would repeat the effect."""
    row = await ended(app, stage.target(), PLACE, {"item": f"large:{size}"})

    assert row.state is State.COMPLETED
    assert (row.result["status"], row.result["response"]) == ("OK", None)
    assert "65,536 bytes" in row.result["omitted"]


async def test_a_message_over_the_limit_gives_up(
    app: Tenure, stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    configure(monkeypatch, stage.settings(max_message=65_536))

    large = await error(app, stage.target(), PLACE, {"item": "large:70000"}, attempts=3)
    sent = await error(app, stage.target(), PLACE, {"item": "x" * 70_000}, attempts=3)

    assert "RESOURCE_EXHAUSTED" in large
    assert "RESOURCE_EXHAUSTED" in sent


async def test_a_compressed_response_is_not_unpacked(
    app: Tenure, stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A few bytes could become gigabytes, and the limit applies to the bytes on the wire."""
    configure(monkeypatch, stage.settings(max_message=65_536))

    why = await error(app, stage.target(), PLACE, {"item": "gzip:3000000"}, attempts=3)

    assert why.startswith("GiveUp")


async def test_a_response_that_is_not_json_is_omitted(app: Tenure, stage: Stage) -> None:
    row = await ended(app, stage.target(), PLACE, {"item": "any"})

    assert row.state is State.COMPLETED
    assert "does not fit the type shop.Receipt" in row.result["omitted"]


async def test_an_infinite_number_is_a_text(app: Tenure, stage: Stage) -> None:
    row = await ended(app, stage.target(), PLACE, {"item": "infinite"})

    assert row.result["response"] == {"price": "Infinity"}


@pytest.mark.parametrize(
    "message",
    [
        {"colour": "red"},
        {"number": "seven"},
        {"placedAt": "yesterday"},
        {"size": "HUGE"},
        {"tags": "one"},
        [1, 2],
        "tea",
        7,
        {"more": {"@type": "type.googleapis.com/shop.Unknown"}},
        {"number": str(2**70)},
    ],
)
async def test_a_message_that_does_not_fit_the_type_gives_up(
    app: Tenure, stage: Stage, message: Any
) -> None:
    why = await error(app, stage.target(), PLACE, {"inner": message}, attempts=3)

    assert "message must fit the type shop.Order" in why
    assert not stage.requests(item="")


@pytest.mark.parametrize("method", ["shop.Orders/Watch", "shop.Orders/Upload"])
async def test_a_streaming_method_is_refused(app: Tenure, stage: Stage, method: str) -> None:
    why = await error(app, stage.target(), method, attempts=3)

    assert "is a streaming method, and gRPC work calls only unary methods" in why


async def test_a_method_that_the_server_does_not_describe_gives_up(
    app: Tenure, stage: Stage
) -> None:
    why = await error(app, stage.target(), "shop.Orders/Sell", attempts=3)

    assert "the server describes no method shop.Orders/Sell" in why


async def test_a_service_that_the_server_does_not_have_gives_up(app: Tenure, stage: Stage) -> None:
    why = await error(app, stage.target(), "shop.Nothing/Sell", attempts=3)

    assert "the server does not describe the service shop.Nothing" in why


async def test_a_schema_is_dropped_after_unimplemented(app: Tenure, stage: Stage) -> None:
    await ended(app, stage.target(), PLACE)
    assert len(schema.SCHEMAS) == 1

    why = await error(app, stage.target(), "shop.Orders/Missing", attempts=3)

    assert "returned UNIMPLEMENTED" in why
    assert len(schema.SCHEMAS) == 0


async def test_an_old_schema_in_the_cache_is_replaced(app: Tenure, stage: Stage) -> None:
    """A server can learn a method or a field while a worker runs."""
    target, _, port = stage.target().rpartition(":")
    key = ("server", (target, int(port)), "shop.Orders")
    old = grpc_shop.shop()
    del old[1].service[0].method[:]
    schema.SCHEMAS.put(key, schema.ServiceSchema({file.name: file for file in old}))

    row = await ended(app, stage.target(), PLACE)

    assert row.state is State.COMPLETED


async def test_a_server_with_the_older_reflection_is_called(app: Tenure, stage: Stage) -> None:
    row = await ended(app, stage.target("old"), PLACE, {"item": "tea"})

    assert row.state is State.COMPLETED


async def test_a_server_without_reflection_needs_a_descriptor_set(
    app: Tenure, stage: Stage, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    refused = await error(app, stage.target("bare"), PLACE, attempts=3)
    file = tmp_path / "shop.pb"
    file.write_bytes(grpc_shop.descriptor_set())
    configure(monkeypatch, stage.settings(descriptors={stage.target("bare"): str(file)}))

    row = await ended(app, stage.target("bare"), PLACE, {"item": "tea", "size": "LARGE"})

    assert "the server has no reflection" in refused
    assert row.result["response"]["size"] == "LARGE"


@pytest.mark.parametrize("content", [b"not a descriptor", grpc_shop.descriptor_set(complete=False)])
async def test_a_broken_descriptor_set_is_a_configuration_error(
    app: Tenure,
    stage: Stage,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    content: bytes,
) -> None:
    """Another worker may have the right file, so the job is retried."""
    file = tmp_path / "shop.pb"
    file.write_bytes(content)
    configure(monkeypatch, stage.settings(descriptors={stage.target("bare"): str(file)}))

    why = await error(app, stage.target("bare"), PLACE)

    assert why.startswith("ConfigError")
    assert "must be a descriptor set with all imports" in why


@pytest.mark.parametrize(
    "service",
    [
        "Endless", "Wide", "Huge", "Many", "Garbage", "Nested", "Circle", "Empty", "Invalid",
        "Twice", "Other", "Ended", "Unknown",
    ],
)  # fmt: skip
async def test_hostile_reflection_gives_up_within_limits(
    app: Tenure, stage: Stage, service: str
) -> None:
    why = await error(app, stage.target("hostile"), f"hostile.{service}/Call", attempts=3)

    assert why.startswith("GiveUp")
    assert len(stage.requests(reflection="file")) <= schema.MAX_FILES
    assert len(why) < 1_000


async def test_silent_reflection_ends_by_a_deadline_of_its_own(
    app: Tenure, stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schema, "REFLECTION_WITHIN", 0.5)

    why = await error(app, stage.target("hostile"), "hostile.Silent/Call")

    assert why.startswith("Retry")


async def test_a_server_that_is_away_is_retried(
    app: Tenure, stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    configure(monkeypatch, {"allow": ["localhost:1"], "plaintext": ["localhost:1"]})

    why = await error(app, "localhost:1", PLACE)

    assert why.startswith("Retry")
    assert "UNAVAILABLE" in why


async def periods(app: Tenure, handle: Any) -> Any:
    """The job's attempts, once one has ended."""
    return await until(lambda: app.admin.jobs.aattempts(handle.id), within=15)
