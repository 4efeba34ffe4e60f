"""Traces: the span of an enqueue, those of the attempts, and the link from these to that."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from tenure import Cancel, Snooze
from tenure.contrib.otel import instrument
from tests.worker.acts import end, periods, until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from opentelemetry.sdk.trace import ReadableSpan

    from tenure import AsyncJob, Handle, Job, Tenure


class Spans:
    """The spans that have ended, by name."""

    def __init__(self, app: Tenure) -> None:
        self._kept = InMemorySpanExporter()
        self.provider = TracerProvider(shutdown_on_exit=False)
        self.provider.add_span_processor(SimpleSpanProcessor(self._kept))
        instrument(app, tracer_provider=self.provider)

    def __getitem__(self, name: str) -> list[ReadableSpan]:
        return [span for span in self._kept.get_finished_spans() if span.name == name]

    async def until(self, name: str) -> None:
        """Return once there is one of this name."""

        async def ask() -> list[ReadableSpan]:
            return self[name]

        await until(ask)

    def of(self, handle: Handle[Any], name: str) -> ReadableSpan:
        """The one span of this name that is about this job."""
        [found] = [s for s in self[name] if given(s)["messaging.message.id"] == str(handle.id)]
        return found


def given(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


def linked(span: ReadableSpan) -> list[int]:
    """The ids of the spans that it is linked to."""
    return [link.context.span_id for link in span.links]


@pytest.fixture
def spans(app: Tenure) -> Iterator[Spans]:
    spans = Spans(app)
    yield spans
    spans.provider.shutdown()


async def test_an_attempt_is_linked_to_the_enqueue_whatever_its_handler_is(
    app: Tenure, spans: Spans
) -> None:
    inside: list[int] = []

    @app.task(queue="mail", name="plain")
    def plain() -> None:
        inside.append(trace.get_current_span().get_span_context().span_id)

    @app.task(queue="mail", name="awaiting")
    async def awaiting(job: AsyncJob) -> None:
        await asyncio.sleep(0)
        inside.append(trace.get_current_span().get_span_context().span_id)

    async with app.run():
        for task in (plain, awaiting):
            handle = await task.aenqueue()
            await end(handle)
            sent, done = spans.of(handle, "send mail"), spans.of(handle, "process mail")

            assert (sent.kind, done.kind) == (SpanKind.PRODUCER, SpanKind.CONSUMER)
            assert linked(done) == [sent.context.span_id]
            assert done.context.trace_id != sent.context.trace_id
            assert inside[-1] == done.context.span_id
            assert given(done) == {
                "messaging.system": "tenure",
                "messaging.operation.name": "process",
                "messaging.operation.type": "process",
                "messaging.destination.name": "mail",
                "messaging.message.id": str(handle.id),
                "tenure.task": task.name,
                "tenure.attempt": 1,
                "tenure.fence": (await app.admin.jobs.aattempts(handle.id))[0].token,
            }
            assert given(sent) == {
                "messaging.system": "tenure",
                "messaging.operation.name": "send",
                "messaging.operation.type": "send",
                "messaging.destination.name": "mail",
                "messaging.message.id": str(handle.id),
                "tenure.task": task.name,
            }
            assert done.status.status_code is StatusCode.UNSET


async def test_every_attempt_has_a_span_and_what_went_wrong_is_on_it(
    app: Tenure, spans: Spans
) -> None:
    @app.task(name="fails", max_attempts=2)
    def fails(job: Job) -> None:
        if job.attempt == 1:
            raise LookupError("no such order")

    async with app.run():
        handle = await fails.aenqueue()
        await periods(app, handle, 1)
        failed = spans.of(handle, "process default")

    [sent] = spans["send default"]
    assert linked(failed) == [sent.context.span_id]
    assert given(failed)["error.type"] == "LookupError"
    assert failed.status.status_code is StatusCode.ERROR
    assert failed.status.description == "LookupError: no such order"
    [event] = failed.events
    assert "no such order" in str((event.attributes or {})["exception.stacktrace"])


@pytest.mark.parametrize("how", ["cancel", "snooze", "target"])
async def test_control_exceptions_are_not_errors(app: Tenure, spans: Spans, how: str) -> None:
    @app.task
    async def says(job: AsyncJob) -> None:
        match how:
            case "cancel":
                raise Cancel("enough")
            case "snooze":
                raise Snooze(3600)
            case _:
                await job.progress(items={"a": 1})

    async with app.run():
        await says.using(target=1).aenqueue()
        await spans.until("process default")
    [done] = spans["process default"]
    assert (done.status.status_code, done.events) == (StatusCode.UNSET, ())


@pytest.mark.parametrize("kind", ["def", "async"])
async def test_a_handler_that_is_stopped_leaves_a_span_with_an_error(
    app: Tenure, spans: Spans, kind: str
) -> None:
    event = asyncio.Event()

    @app.task(timeout=0.2, max_attempts=1)
    def hangs() -> None:
        with contextlib.suppress(Exception):
            while True:
                # Inside a driver it would not be stopped: that could leave a lock locked.
                time.sleep(0.01)

    @app.task(timeout=0.2, max_attempts=1)
    async def waits() -> None:
        await event.wait()

    async with app.run():
        task: Callable[[], Any] = hangs.aenqueue if kind == "def" else waits.aenqueue
        await end(await task())
    [done] = spans["process default"]
    assert done.status.status_code is StatusCode.ERROR
    assert given(done)["error.type"] in (
        "tenure.errors.Stopped",
        "asyncio.exceptions.CancelledError",
    )


async def test_the_span_of_an_enqueue_is_inside_the_callers_and_each_of_many_has_its_own(
    app: Tenure, spans: Spans
) -> None:
    @app.task(queue="mail")
    def send(n: int) -> None: ...

    tracer = spans.provider.get_tracer("shop")
    with tracer.start_as_current_span("request") as request:
        handles = await app.aenqueue_many(send.bind(n) for n in range(3))
        handles.append(await asyncio.to_thread(send.enqueue, 3))
        assert trace.get_current_span() is request
    sent = [spans.of(handle, "send mail") for handle in handles]
    assert {span.parent.span_id for span in sent if span.parent} == {
        request.get_span_context().span_id
    }
    rows = [await app.admin.jobs.aget(handle.id) for handle in handles]
    assert [row.meta["fields"]["traceparent"][:-2] for row in rows if row] == [
        f"00-{span.context.trace_id:032x}-{span.context.span_id:016x}-" for span in sent
    ]


def test_an_enqueue_in_the_callers_transaction_has_its_span_and_its_error(
    app: Tenure, spans: Spans, url: str
) -> None:
    @app.task(queue="mail")
    def send() -> None: ...

    with psycopg.connect(url) as connection:
        handle = send.using(connection=connection).enqueue()
    assert spans.of(handle, "send mail").status.status_code is StatusCode.UNSET
    with psycopg.connect(url) as connection:
        connection.execute("SELECT set_config('search_path', '', true)")
        with pytest.raises(psycopg.Error):
            connection.execute("SELECT 1/0")
        with pytest.raises(Exception, match="aborted"):
            send.using(connection=connection).enqueue()
    failed = spans["send mail"][-1]
    assert failed.status.status_code is StatusCode.ERROR
    assert "messaging.message.id" not in given(failed)


def test_an_enqueue_whose_key_had_a_job_says_so(app: Tenure, spans: Spans) -> None:
    @app.task
    def send() -> None: ...

    first, second = (send.using(key="one").enqueue() for _ in range(2))
    assert first.id == second.id
    assert [given(span).get("tenure.created") for span in spans["send default"]] == [None, False]


async def test_follow_up_is_inside_the_attempt_that_enqueued_it(app: Tenure, spans: Spans) -> None:
    @app.task(queue="mail", name="next")
    def following() -> None: ...

    @app.task(name="first")
    def first(job: Job) -> None:
        job.enqueue(following.bind())

    async with app.run():
        await first.aenqueue()
        await spans.until("process mail")
    [request], [done], [after] = spans["process default"], spans["send mail"], spans["process mail"]
    assert done.parent is not None
    assert done.parent.span_id == request.context.span_id
    assert linked(after) == [done.context.span_id]


JOBS = """
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, ConsoleSpanExporter
from tenure import Tenure
from tenure.contrib.otel import instrument

app = Tenure()
instrument(app)
provider = TracerProvider()
spans = ConsoleSpanExporter(
    out=open("spans.jsonl", "a"), formatter=lambda span: span.to_json(indent=None) + "\\n"
)
provider.add_span_processor(BatchSpanProcessor(spans, schedule_delay_millis=3_600_000))
trace.set_tracer_provider(provider)

@app.task(name="here")
def here(): ...

@app.task(name="apart", process=True)
def apart():
    raise ValueError("apart")
"""


def test_a_worker_that_ends_has_sent_its_spans_those_of_processes_too(
    url: str, tmp_path: Path
) -> None:
    """A span that waits in memory would be gone with its process: they end by os._exit, or are
    killed. The batch would be sent after an hour."""
    (tmp_path / "jobs.py").write_text(JOBS)
    enqueue = "import jobs; jobs.here.enqueue(); jobs.apart.using(max_attempts=1).enqueue()"
    for command in (["-c", enqueue], ["-m", "tenure", "worker", "jobs:app", "--drain"]):
        subprocess.run(
            [sys.executable, *command],
            cwd=tmp_path,
            env=os.environ | {"TENURE_DATABASE_URL": url, "TENURE_RUN_DIR": str(tmp_path / "run")},
            check=True,
            timeout=60,
            capture_output=True,
        )
    lines = (tmp_path / "spans.jsonl").read_text().splitlines()
    spans = {(s["name"], s["attributes"]["tenure.task"]): s for s in map(json.loads, lines)}
    for task, status in (("here", "UNSET"), ("apart", "ERROR")):
        sent, done = spans["send default", task], spans["process default", task]
        assert [link["context"]["span_id"] for link in done["links"]] == [
            sent["context"]["span_id"]
        ]
        assert done["status"]["status_code"] == status


def test_without_opentelemetry_it_can_be_imported_and_says_what_to_install() -> None:
    program = """
import sys
sys.modules["opentelemetry"] = None
from tenure import Tenure
from tenure.contrib.otel import instrument
try:
    instrument(Tenure("postgresql://nobody@127.0.0.1:1/none"))
except Exception as error:
    print(type(error).__name__, error)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.startswith("ConfigError OpenTelemetry is not installed ")
    assert done.stdout.endswith('pip install "tenure[otel]"\n')
