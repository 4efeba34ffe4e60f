"""OpenTelemetry traces: one span for each enqueue, and one for each attempt.

Only `instrument` imports OpenTelemetry.
"""

from typing import TYPE_CHECKING

from tenure.app import Tenure
from tenure.errors import ConfigError

if TYPE_CHECKING:
    from opentelemetry.trace import TracerProvider

__all__ = ["instrument"]


def instrument(app: Tenure, *, tracer_provider: "TracerProvider | None" = None) -> None:
    """Trace every enqueue and attempt in an app. Needs `tenure[otel]`.

    Args:
        app: The app.
        tracer_provider: Where spans go (default: the program's global provider).

    Raises:
        ConfigError: OpenTelemetry is not installed.
    """
    try:
        from tenure.contrib.otel.spans import Spans  # noqa: PLC0415 - it needs the extra
    except ModuleNotFoundError as error:
        raise ConfigError(
            f'OpenTelemetry is not installed ({error}); run pip install "tenure[otel]"'
        ) from error
    spans = Spans(tracer_provider)
    app.middleware("enqueue")(spans.around_enqueue)
    app.middleware("run")(spans.around_run)
    app.on("worker_stopped")(spans.send_the_rest)
