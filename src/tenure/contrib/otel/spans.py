"""The two spans of a job, by OpenTelemetry's conventions for messaging, and how the first comes to
the second: as W3C trace context among the job's notes.

Baggage does not go with a job: it can hold anything, and would be stored.
"""

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import Link, Span, SpanKind, StatusCode, TracerProvider
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from tenure import AsyncJob, Cancel, Draft, Job, Snooze, WorkerEvent
from tenure.errors import Stopped

_CARRIER = TraceContextTextMapPropagator()
# How long the last spans of a process have to get away.
_AT_THE_END_MS = 1500


class Spans:
    """The middleware around enqueue and around run."""

    def __init__(self, provider: TracerProvider | None) -> None:
        self._provider = provider
        self._tracer = trace.get_tracer("tenure", tracer_provider=provider)

    def around_enqueue(self, draft: Draft) -> Iterator[None]:
        """The span in which a job is enqueued. What is inside it, the store's statements, are its
        children; the job carries it."""
        own = {"tenure.task": draft.task}
        with self._span("send", SpanKind.PRODUCER, draft.queue, own) as span:
            _CARRIER.inject(draft.meta)
            yield
            if draft.id is not None:
                span.set_attribute("messaging.message.id", str(draft.id))
            if draft.created is False:
                span.set_attribute("tenure.created", False)

    def around_run(self, job: Job | AsyncJob) -> Iterator[None]:
        """The span of an attempt: the root of a trace of its own, which may begin days after the
        enqueue and be one of several, linked to the span in which the job was enqueued."""
        own: dict[str, str | int] = {
            "messaging.message.id": str(job.id),
            "tenure.task": job.task,
            "tenure.attempt": job.attempt,
            "tenure.fence": job.fence,
        }
        try:
            with self._span("process", SpanKind.CONSUMER, job.queue, own, after=job.meta):
                yield
        finally:
            if _is_apart():
                self._flush()

    def send_the_rest(self, event: WorkerEvent) -> None:  # noqa: ARG002 - which one is all the same
        """A worker's process ends without what Python does at its end."""
        self._flush()

    @contextmanager
    def _span(
        self,
        operation: str,
        kind: SpanKind,
        queue: str,
        own: Mapping[str, str | int],
        after: Mapping[str, object] | None = None,
    ) -> Iterator[Span]:
        attributes: dict[str, str | int] = {
            "messaging.system": "tenure",
            "messaging.operation.name": operation,
            "messaging.operation.type": operation,
            "messaging.destination.name": queue,
            **own,
        }
        with self._tracer.start_as_current_span(
            f"{operation} {queue}",
            kind=kind,
            attributes=attributes,
            links=_links(after or {}),
            record_exception=False,
            set_status_on_exception=False,
        ) as span:
            try:
                yield span
            except (Cancel, Snooze):  # said on purpose
                raise
            except (Exception, Stopped, asyncio.CancelledError, SystemExit) as error:
                span.record_exception(error)
                span.set_attribute("error.type", _name(error))
                span.set_status(StatusCode.ERROR, f"{type(error).__name__}: {error}")
                raise

    def _flush(self) -> None:
        flush = getattr(self._provider or trace.get_tracer_provider(), "force_flush", None)
        if flush is not None:
            flush(_AT_THE_END_MS)


def _links(notes: Mapping[str, object]) -> list[Link]:
    """The span that notes carry, if they carry one that can be read."""
    carrier = {name: text for name, text in notes.items() if isinstance(text, str)}
    context = trace.get_current_span(_CARRIER.extract(carrier, Context())).get_span_context()
    return [Link(context)] if context.is_valid else []


def _name(error: BaseException) -> str:
    kind = type(error)
    return (
        kind.__qualname__
        if kind.__module__ == "builtins"
        else (f"{kind.__module__}.{kind.__qualname__}")
    )


def _is_apart() -> bool:
    """Whether this process is there for one handler at a time, and is killed when it is idle."""
    from tenure.worker.processes import is_handler_process  # noqa: PLC0415 - programs that only enqueue

    return is_handler_process()
