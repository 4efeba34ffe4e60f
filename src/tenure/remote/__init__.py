"""The worker protocol for workers elsewhere: acquire, renew, report, settle, under the same leases
and fences as the workers of this package. A route is a spelling of one of these methods.

The `holder` is whose bearer token is used: a lease is worth nothing to another.
"""

from tenure._model.job import JobRow
from tenure._model.lease import Renewal, Renewed, Reported, Settled, Settling
from tenure._model.outcome import Error, Failed, Outcome, Released, Snoozed, Succeeded
from tenure.remote.strings import Session
from tenure.remote.verbs import Remote
from tenure.remote.words import Acquired, Ending, Introduction, Work

__all__ = [
    "Acquired",
    "Ending",
    "Error",
    "Failed",
    "Introduction",
    "JobRow",
    "Outcome",
    "Released",
    "Remote",
    "Renewal",
    "Renewed",
    "Reported",
    "Session",
    "Settled",
    "Settling",
    "Snoozed",
    "Succeeded",
    "Work",
]
