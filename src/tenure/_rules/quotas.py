"""Quotas: limits on what a tenant may store and do.

The server enforces quotas for requests over HTTP. Programs that enqueue through the database
aren't limited.
"""

from collections.abc import Mapping

from tenure.errors import InvalidValue

# Each name and its greatest value.
QUEUE_QUOTAS: Mapping[str, float] = {
    "live_jobs": 10_000_000,
    "payload_bytes": 2**50,
    "enqueue_rate": 1_000_000,
}
TOKEN_QUOTAS: Mapping[str, float] = {
    **QUEUE_QUOTAS,
    "key_for": 36_500 * 86_400,
    "sessions": 100_000,
    "queue_names": 100_000,
}


def check_quotas(quotas: Mapping[str, float], known: Mapping[str, float]) -> dict[str, float]:
    """Return the quotas to store. Raise InvalidValue if a name or a value is invalid."""
    for name, value in quotas.items():
        if name not in known:
            raise InvalidValue(f"a quota must be one of {', '.join(known)}, got {name[:60]!r}")
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise InvalidValue(f"quota {name} must be a number, got {str(value)[:60]!r}")
        if not 0 <= value <= known[name]:
            raise InvalidValue(f"quota {name} must be from 0 to {known[name]:,}, got {value}")
    return {name: quotas[name] for name in known if name in quotas}
