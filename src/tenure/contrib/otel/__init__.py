"""Traces by OpenTelemetry: a span where a job is enqueued, and one around each of its attempts.

Importing this needs nothing of OpenTelemetry's; `instrument` does.
"""

from typing import TYPE_CHECKING

from tenure.app import Tenure
from tenure.errors import ConfigError

if TYPE_CHECKING:
    from opentelemetry.trace import TracerProvider

__all__ = ["instrument"]


def instrument(app: Tenure, *, tracer_provider: "TracerProvider | None" = None) -> None:
    """Have the app's enqueues and attempts traced, by the provider that is set for the whole
    program unless one is given."""
    try:
        from tenure.contrib.otel.spans import Spans  # noqa: PLC0415 - it needs the extra
    except ModuleNotFoundError as error:
        raise ConfigError(
            f'traces cannot be had: {error}; install the extra: pip install "tenure[otel]"'
        ) from error
    spans = Spans(tracer_provider)
    app.middleware("enqueue")(spans.around_enqueue)
    app.middleware("run")(spans.around_run)
    app.on("worker_stopped")(spans.send_the_rest)
