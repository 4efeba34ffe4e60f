"""For the tests of programs that use Tenure: against a real PostgreSQL, without workers.

Each name is fetched from its module when first used: pytest loads this package for its plugin
in every run, whether it is used or not.
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
    """The name's value, from its own module; kept here from then on."""
    for home, names in _HOMES.items():
        if name in names:
            value = getattr(import_module(f"tenure.testing.{home}"), name)
            globals()[name] = value
            return value
    raise AttributeError(f"module 'tenure.testing' has no attribute {name!r}")
