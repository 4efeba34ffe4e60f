"""A job's two spans, following OpenTelemetry's messaging conventions.

The job's `meta` contains the W3C trace context that links the second span to the first. Baggage
isn't stored, because it can contain anything.
"""

import asyncio
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import Link, Span, SpanKind, StatusCode, TracerProvider
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from tenure import AsyncJob, Cancel, Draft, Job, Snooze, WorkerEvent
from tenure.admin import Redactor
from tenure.errors import Stopped

_CARRIER = TraceContextTextMapPropagator()
_REDACTOR = Redactor()
# How long a process may take to flush its last spans.
_AT_THE_END_MS = 1500


class Spans:
    """The middleware for enqueue and run."""

    def __init__(self, provider: TracerProvider | None) -> None:
        self._provider = provider
        self._tracer = trace.get_tracer("tenure", tracer_provider=provider)

    def around_enqueue(self, draft: Draft) -> Iterator[None]:
        """Wrap an enqueue in a producer span, whose context is stored in the job."""
        own = {"tenure.task": draft.task}
        with self._span("send", SpanKind.PRODUCER, draft.queue, own) as span:
            _CARRIER.inject(draft.meta)
            yield
            if draft.id is not None:
                span.set_attribute("messaging.message.id", str(draft.id))
            if draft.created is False:
                span.set_attribute("tenure.created", False)

    def around_run(self, job: Job | AsyncJob) -> Iterator[None]:
        """Wrap an attempt in a consumer span that links to the enqueue's span.

        The attempt starts a new trace, because it may run days after the enqueue, and there may be
        more than one attempt.
        """
        own: dict[str, str | int] = {
            "messaging.message.id": str(job.id),
            "tenure.task": job.task,
            "tenure.attempt": job.attempt,
            "tenure.fence": job.fence,
        }
        try:
            with self._span("process", SpanKind.CONSUMER, job.queue, own, job):
                yield
        finally:
            if _is_handler_process():
                self._flush()

    def send_the_rest(self, event: WorkerEvent) -> None:  # noqa: ARG002 - any event will do
        """Flush the spans, because a worker's processes exit without running exit handlers."""
        self._flush()

    @contextmanager
    def _span(
        self,
        operation: str,
        kind: SpanKind,
        queue: str,
        own: Mapping[str, str | int],
        job: Job | AsyncJob | None = None,
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
            links=_links({} if job is None else job.meta),
            record_exception=False,
            set_status_on_exception=False,
        ) as span:
            try:
                yield span
            except (Cancel, Snooze):  # not errors
                raise
            except (Exception, Stopped, asyncio.CancelledError, SystemExit) as error:
                row = None if job is None else job._row  # noqa: SLF001 - its secrets are hidden
                known = () if row is None else _REDACTOR.values([row.args, row.cursor, row.meta])
                text = _REDACTOR.text(str(error), known)
                lines = "".join(traceback.format_exception(error))
                span.record_exception(
                    error,
                    {
                        "exception.message": text,
                        "exception.stacktrace": _REDACTOR.text(lines, known),
                    },
                )
                span.set_attribute("error.type", _name(error))
                span.set_status(StatusCode.ERROR, f"{type(error).__name__}: {text}")
                raise

    def _flush(self) -> None:
        flush = getattr(self._provider or trace.get_tracer_provider(), "force_flush", None)
        if flush is not None:
            flush(_AT_THE_END_MS)


def _links(notes: Mapping[str, object]) -> list[Link]:
    """Return a link to the span in a job's `meta`, if there is a valid one."""
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


def _is_handler_process() -> bool:
    """Return whether this process runs one handler at a time and is killed when idle."""
    from tenure.worker.processes import is_handler_process  # noqa: PLC0415 - programs that only enqueue

    return is_handler_process()
