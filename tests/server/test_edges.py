"""Every shape of a secret, in every field of a job, at every edge: none is shown in clear.

A canary stands in each shape, and a second one is the value of a hidden field, which the job's own
texts repeat without a name.
"""

from __future__ import annotations

import io
import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import httpx
import psycopg
import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind

from support.secret_shapes import texts, values
from tenure.admin import By, selector_text
from tenure.cli.commands import app as command_line
from tenure.contrib.otel.spans import Spans
from tenure.server.access_log import AccessLog
from tenure.types import Selector
from tenure.worker.log_format import JsonFormatter, TextFormatter
from tests.server import edges

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.server.conftest import Service

QUEUE = "canaries"
SHAPED = "zq9huntertwoxk4mpv7rw3ab"
OWN = "wbqkdzpvmtrnhxlcygjfsaeu"
# Some shapes hold only a part of the canary.
CANARIES = (SHAPED[:16], OWN)


@dataclass(frozen=True)
class Planted:
    """The server, and the two jobs that have every shape: a dead letter and a completed one."""

    service: Service
    jobs: tuple[str, str]
    operation: str


def payload() -> dict[str, Any]:
    """Return all shapes as one value."""
    return {"password": OWN, "note": f"it is {OWN}", **values(SHAPED)}


@pytest.fixture(scope="module")
def planted(service: Service) -> Planted:
    """Plant the canaries by the routes that a program and a worker use."""
    service.admin.schedules.create(QUEUE, "t", By("ops"), every=86_400, queue=QUEUE, args=payload())
    shaped = list(texts(SHAPED).values())
    with service.caller() as caller:
        jobs: list[dict[str, Any]] = [{"args": {"password": OWN, "note": text}} for text in shaped]
        jobs += [{"args": payload(), "key": f"by {OWN}", "tags": [f"password={SHAPED}"]}] * 2
        jobs[-1] = {**jobs[-1], "key": "another"}
        body = [{"task": "t", "queue": QUEUE, "max_attempts": 1, **job} for job in jobs]
        made = caller.post("/v1/jobs:batch", json={"jobs": body})
        assert made.status_code == 201, made.text
        wanted = {"queues": [QUEUE], "worker": {"name": "w"}, "count": len(body), "wait": 0}
        held = caller.post("/v1/leases:acquire", json=wanted).json()["jobs"]
        assert len(held) == len(body)
        held.sort(key=lambda job: int(job["id"]))
        for job, text in zip(held, [*shaped, shaped[0], ""], strict=True):
            # What is known comes first: some shapes hide the rest of a text.
            words = f"with {OWN} then {text}"
            report = {"cursor": payload(), "message": words, "items": values(SHAPED) | {"i": words}}
            if job in held[-2:]:
                sent = {"lease": job["lease"], **report, "log": words}
                assert caller.post("/v1/leases:progress", json=sent).is_success
            if text:
                error = {"type": "E", "message": words, "trace": f"Traceback\nE: {words}"}
                sent = {"lease": job["lease"], "error": error, "retry": "never", "log": words}
                assert caller.post("/v1/leases:fail", json=sent).is_success
            else:
                sent = {"lease": job["lease"], "result": payload(), "log": words}
                assert caller.post("/v1/leases:complete", json=sent).is_success
        body_of_retry = {"kind": "retry", "filter": "queue:elsewhere state:failed"}
        operation = caller.post("/v1/operations", json=body_of_retry)
        assert operation.is_success, operation.text
    dead, done = held[-2]["id"], held[-1]["id"]
    plant_edits(service, int(dead))
    gather_attempts(service.database, int(dead))
    return Planted(service, (dead, done), operation.json()["id"])


def plant_edits(service: Service, dead: int) -> None:
    """Change a dead letter to canaries of every shape and back, so the audit log has them."""
    stored = service.admin.jobs.get(dead)
    assert stored
    by = By("ops", reason="canaries")
    for args in ({**payload(), "note": f"now {OWN}"}, *values_one_by_one(), stored.args):
        tags = [f"password={SHAPED}"]
        assert service.admin.jobs.edit([dead], by, args=args, tags=tags) == ["edited"]


def values_one_by_one() -> Iterator[dict[str, Any]]:
    """Yield arguments that stay small enough for the audit log to keep them."""
    for name, value in values(SHAPED).items():
        yield {"password": OWN, "note": f"it is {OWN}", name: value}


def gather_attempts(database: str, job: int) -> None:
    """Give one job the attempts of all, so that its page shows each shape as a text of its own."""
    with psycopg.connect(database, autocommit=True) as connection:
        found = connection.execute(
            "SELECT string_agg(quote_ident(attname), ', ') FROM pg_attribute"
            " WHERE attrelid = 'tenure.attempt'::regclass AND attnum > 0 AND NOT attisdropped"
            " AND attname NOT IN ('job_id', 'token')"
        ).fetchone()
        assert found
        connection.execute(
            f"INSERT INTO tenure.attempt (job_id, token, {found[0]})"
            f" SELECT %s, 1000000 + row_number() OVER (), {found[0]} FROM tenure.attempt"
            " WHERE job_id <> %s",
            [job, job],
        )


def requests(planted: Planted) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield every path that can be read, with every question."""
    for method, path in edges.routes():
        if method != "GET" or path in edges.ENDLESS:
            continue
        for job in planted.jobs if "{job_id}" in path else [""]:
            place = path.replace("{job_id}", job).replace("{operation_id}", planted.operation)
            for prefix, name in edges.NAMED.items():
                if path.startswith(prefix):
                    place = place.replace("{name:path}", name)
            assert "{" not in place, f"say in tests/server/edges.py how {path} is reached"
            for query in edges.QUERIES.get(path, ({},)):
                yield place, dict(query)


def test_every_route_and_command_is_on_the_list() -> None:
    changing = {(method, path) for method, path in edges.routes() if method != "GET"}
    silent = {(method, path) for path, methods in edges.SILENT.items() for method in methods}
    assert changing == silent
    assert sorted(edges.every_command()) == sorted([*edges.COMMANDS, *edges.QUIET])


def test_no_route_and_no_page_shows_a_canary(planted: Planted) -> None:
    """Before, the groups, the pages /failed and /queues and the items showed them."""
    service = planted.service
    made = service.admin.tokens.create("all", By("ops"), scopes=["admin"], queues=["*"])
    with httpx.Client(
        base_url=service.url,
        headers={"Authorization": f"Bearer {made.secret}", "Origin": service.url},
        timeout=30,
    ) as client:
        signed_in = client.post("/sign-in", data={"token": made.secret})
        assert signed_in.status_code == 303, signed_in.text
        seen: dict[str, str] = {}
        for place, query in requests(planted):
            for at in range(9):
                answer = client.get(place, params=query)
                if place == "/sign-in":  # Who is signed in is sent on.
                    assert answer.status_code == 303
                    break
                assert answer.status_code == 200, (place, query, answer.text[:300])
                seen[f"{place} {query} {at}"] = answer.text
                more = answer.json().get("next_page_token") if place[:4] == "/v1/" else None
                if not more:
                    break
                query["page_token"] = more
    leaks = {place for place, text in seen.items() for one in CANARIES if one in text}
    assert leaks == set()
    assert sum("&lt;redacted&gt;" in text or "<redacted>" in text for text in seen.values()) > 20
    shown = service.words.read_text()
    assert [one for one in CANARIES if one in shown] == []


def test_the_signature_of_a_group_that_is_shown_selects_the_group(planted: Planted) -> None:
    with planted.service.caller() as caller:
        groups = caller.get("/v1/failed/groups", params={"page_size": 200}).json()["groups"]
        assert len(groups) > 30
        for group in groups[::10]:
            text = selector_text(Selector(error=(group["signature"],)))
            found = caller.get("/v1/jobs", params={"filter": text}).json()["jobs"]
            assert group["sample"] in [job["id"] for job in found], group


def test_no_command_prints_a_canary(
    planted: Planted, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TENURE_DATABASE_URL", planted.service.database)
    shown = 0
    for command, given in edges.COMMANDS.items():
        words = command.split()[1:]
        for form in ([], ["--json"]):
            for job in planted.jobs if "JOB" in given else ("",):
                arguments = [*words, *(job if one == "JOB" else one for one in given), *form]
                command_line(args=arguments, prog_name="tenure", standalone_mode=False)
                out = "".join(capsys.readouterr())
                assert out, arguments
                assert [one for one in CANARIES if one in out] == [], arguments
                shown += "<redacted>" in out
    assert shown > 8


@pytest.mark.parametrize("formatter", [TextFormatter("%(message)s"), JsonFormatter()])
def test_no_line_of_a_log_has_a_canary(formatter: logging.Formatter) -> None:
    for name, text in texts(SHAPED).items():
        error = RuntimeError(text)
        record = logging.LogRecord(
            "shop", logging.ERROR, "f", 1, "%s", (text,), (RuntimeError, error, None)
        )
        record.__dict__ |= {"note": text, "password": OWN, "all": {"a": [text]}}
        line = formatter.format(record)
        assert [one for one in CANARIES if one in line] == [], name


def test_a_line_of_the_log_names_who_read_a_payload(
    service: Service, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "tenure")
    by = By("token:7:ana", "http", address="192.0.2.1")
    AccessLog(service.admin, name="s").read(by, "job 7")
    line = TextFormatter("%(message)s").format(caplog.records[-1])
    assert line == "server: payload.read by token 7 ana, target=job 7 address=192.0.2.1"


def test_no_span_has_a_canary() -> None:
    kept = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(kept))
    spans = Spans(provider)
    for text in texts(SHAPED).values():
        with (
            pytest.raises(RuntimeError),
            spans._span("process", SpanKind.CONSUMER, QUEUE, {}),
        ):
            raise RuntimeError(text)
    out = io.StringIO()
    for span in kept.get_finished_spans():
        out.write(span.to_json())
    provider.shutdown()
    assert "<redacted>" in out.getvalue()
    assert [one for one in CANARIES if one in out.getvalue()] == []
