"""The worker protocol for remote workers: acquire, renew, report, settle.

The `holder` is the owner of the access token. Only the holder can use its leases.
"""

from tenure._model.job import JobRow
from tenure._model.lease import ProgressResult, RenewResult, RenewStatus, SettleResult, SettleStatus
from tenure._model.outcome import Failed, FinalReport, Outcome, Released, Snoozed, Succeeded
from tenure.errors import Error
from tenure.gateway.lease_strings import RemoteSession
from tenure.gateway.protocol import Remote
from tenure.gateway.types import AcquiredJob, AcquireResult, SettleCommand, WorkerInfo

__all__ = [
    "AcquireResult",
    "AcquiredJob",
    "Error",
    "Failed",
    "FinalReport",
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
