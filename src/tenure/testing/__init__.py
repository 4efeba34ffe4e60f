"""For the tests of programs that use Tenure: against a real PostgreSQL, without workers.

Each name is fetched from its module when first used: pytest loads this package for its plugin
in every run, whether it is used or not.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tenure.testing.binding import use_connection, use_database
    from tenure.testing.draining import Drained, adrain, drain
    from tenure.testing.inlining import inline
    from tenure.testing.looking import (
        aassert_enqueued,
        aassert_not_enqueued,
        aenqueued,
        assert_enqueued,
        assert_not_enqueued,
        enqueued,
    )
    from tenure.testing.running import Ran

__all__ = [
    "Drained",
    "Ran",
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
    "binding": ("use_connection", "use_database"),
    "draining": ("Drained", "adrain", "drain"),
    "inlining": ("inline",),
    "looking": (
        "aassert_enqueued",
        "aassert_not_enqueued",
        "aenqueued",
        "assert_enqueued",
        "assert_not_enqueued",
        "enqueued",
    ),
    "running": ("Ran",),
}


def __getattr__(name: str) -> Any:
    """The name's value, from its own module; kept here from then on."""
    for home, names in _HOMES.items():
        if name in names:
            value = getattr(import_module(f"tenure.testing.{home}"), name)
            globals()[name] = value
            return value
    raise AttributeError(f"module 'tenure.testing' has no attribute {name!r}")
