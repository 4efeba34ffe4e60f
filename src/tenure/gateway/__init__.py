"""The worker protocol for workers elsewhere: acquire, renew, report, settle, under the same leases
and fences as the workers of this package. A route is a spelling of one of these methods.

The `holder` is whose bearer token is used: a lease is worth nothing to another.
"""

from tenure._model.job import JobRow
from tenure._model.lease import ProgressResult, RenewResult, RenewStatus, SettleResult, SettleStatus
from tenure._model.outcome import Failed, Outcome, Released, Snoozed, Succeeded
from tenure.errors import Error
from tenure.gateway.lease_strings import RemoteSession
from tenure.gateway.protocol import Remote
from tenure.gateway.types import AcquiredJob, AcquireResult, SettleCommand, WorkerInfo

__all__ = [
    "AcquireResult",
    "AcquiredJob",
    "Error",
    "Failed",
    "JobRow",
    "Outcome",
    "ProgressResult",
    "Released",
    "Remote",
    "RemoteSession",
    "RenewResult",
    "RenewStatus",
    "SettleCommand",
    "SettleResult",
    "SettleStatus",
    "Snoozed",
    "Succeeded",
    "WorkerInfo",
]
