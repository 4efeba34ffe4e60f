"""Helpers for testing programs that use Tenure, with a real PostgreSQL but without a worker.

Each name is loaded from its module on first use, because the plugin imports this package in every
pytest run.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tenure.testing.assertions import (
        aassert_enqueued,
        aassert_not_enqueued,
        aenqueued,
        assert_enqueued,
        assert_not_enqueued,
        enqueued,
    )
    from tenure.testing.databases import use_connection, use_database
    from tenure.testing.drain_jobs import Drained, adrain, drain
    from tenure.testing.inline_jobs import inline
    from tenure.testing.runner import RunRecord

__all__ = [
    "Drained",
    "RunRecord",
    "aassert_enqueued",
    "aassert_not_enqueued",
    "adrain",
    "aenqueued",
    "assert_enqueued",
    "assert_not_enqueued",
    "drain",
    "enqueued",
    "inline",
    "use_connection",
    "use_database",
]

_HOMES = {
    "databases": ("use_connection", "use_database"),
    "drain_jobs": ("Drained", "adrain", "drain"),
    "inline_jobs": ("inline",),
    "assertions": (
        "aassert_enqueued",
        "aassert_not_enqueued",
        "aenqueued",
        "assert_enqueued",
        "assert_not_enqueued",
        "enqueued",
    ),
    "runner": ("RunRecord",),
}


def __getattr__(name: str) -> Any:
    """Load a name from its module on first use."""
    for home, names in _HOMES.items():
        if name in names:
            value = getattr(import_module(f"tenure.testing.{home}"), name)
            globals()[name] = value
            return value
    raise AttributeError(f"module 'tenure.testing' has no attribute {name!r}")
