"""Tenure, a durable job queue on PostgreSQL.

Each name is loaded from its module on first use, so a program that doesn't need a database, such as
`tenure probe`, never loads a driver.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tenure import errors
    from tenure._hooks.middleware import Draft
    from tenure._model.event import JobEvent, WorkerEvent
    from tenure._model.outcome import Cancel, GiveUp, Retry, Snooze
    from tenure._rules.sealing import Codec
    from tenure.app import Tenure
    from tenure.config import FOREVER, Backoff
    from tenure.handle import Handle
    from tenure.job import AsyncJob, Job, current_job

__all__ = [
    "FOREVER",
    "AsyncJob",
    "Backoff",
    "Cancel",
    "Codec",
    "Draft",
    "GiveUp",
    "Handle",
    "Job",
    "JobEvent",
    "Retry",
    "Snooze",
    "Tenure",
    "WorkerEvent",
    "current_job",
    "errors",
]

_HOMES = {
    "FOREVER": "tenure.config",
    "AsyncJob": "tenure.job",
    "Backoff": "tenure.config",
    "Cancel": "tenure._model.outcome",
    "Codec": "tenure._rules.sealing",
    "Draft": "tenure._hooks.middleware",
    "GiveUp": "tenure._model.outcome",
    "Handle": "tenure.handle",
    "Job": "tenure.job",
    "JobEvent": "tenure._model.event",
    "Retry": "tenure._model.outcome",
    "Snooze": "tenure._model.outcome",
    "Tenure": "tenure.app",
    "WorkerEvent": "tenure._model.event",
    "current_job": "tenure.job",
}


def __getattr__(name: str) -> Any:
    """Load a name from its module on first use."""
    if name in _HOMES:
        value = getattr(import_module(_HOMES[name]), name)
    elif name in __all__:
        value = import_module(f"tenure.{name}")
    else:
        raise AttributeError(f"module 'tenure' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
