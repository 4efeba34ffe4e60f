"""The JSON messages between a child and a handler's process, one message per line.

We don't use pickle. Messages contain only plain values, and each side constructs only types that
its own code names.
"""

import json
from dataclasses import fields
from datetime import datetime, timedelta
from operator import attrgetter
from typing import Any
from uuid import UUID

from tenure._model.ids import Json, WorkerId
from tenure._model.job import JobRow, NewJob, State
from tenure._model.lease import Lease
from tenure._model.outcome import (
    SUCCEEDED,
    Cancelled,
    Failed,
    Outcome,
    Released,
    Snoozed,
    Succeeded,
)
from tenure._rules import serialization
from tenure.job import LeaseState

_JSON = json.JSONEncoder(ensure_ascii=True, default=str)
_OUTCOMES: dict[str, type[Outcome]] = {
    kind.__name__: kind for kind in (Succeeded, Failed, Snoozed, Released, Cancelled)
}

_FIELDS = [field.name for field in fields(JobRow)]
_INSTANTS = [field.name for field in fields(JobRow) if field.type in (datetime, datetime | None)]
_values = attrgetter(*_FIELDS)


def encode(message: dict[str, Json]) -> bytes:
    return _JSON.encode(message).encode() + b"\n"


def decode(line: bytes) -> dict[str, Any]:
    message: dict[str, Any] = json.loads(line)
    return message


def run(row: JobRow, lease: Lease) -> dict[str, Json]:
    # Fields are sent in order and without conversion, because using annotations took longer than
    # running a short handler.
    return {"run": _values(row), "lease": [lease.claimed_by.hex, lease.ttl.total_seconds()]}


def read_run(message: dict[str, Any]) -> tuple[JobRow, Lease]:
    owner, ttl = message["lease"]
    worker = WorkerId(UUID(owner))
    raw = dict(zip(_FIELDS, message["run"], strict=True))
    raw |= {name: at and datetime.fromisoformat(at) for name in _INSTANTS for at in [raw[name]]}
    row = JobRow(**raw | {"state": State(raw["state"]), "claimed_by": worker})
    return row, Lease(row.id, row.token, worker, timedelta(seconds=ttl))


def ended(outcome: Outcome, log: str | None, lease_state: LeaseState) -> dict[str, Json]:
    return {
        "ended": type(outcome).__name__,
        "outcome": None if outcome is SUCCEEDED else serialization.dump(outcome),
        "log": log,
        "settled": lease_state.settled,
        "completed_in_caller_transaction": lease_state.completed_in_caller_transaction,
        "follow_ups": [serialization.dump(job) for job in lease_state.follow_ups],
    }


def read_ended(message: dict[str, Any], lease_state: LeaseState) -> tuple[Outcome, str | None]:
    """Read the outcome and the log from an `ended` message, and update the lease state."""
    lease_state.settled = message["settled"]
    lease_state.completed_in_caller_transaction = message["completed_in_caller_transaction"]
    lease_state.follow_ups = [serialization.load(job, NewJob) for job in message["follow_ups"]]
    if message["outcome"] is None:
        return SUCCEEDED, message["log"]
    outcome: Outcome = serialization.load(message["outcome"], _OUTCOMES[message["ended"]])
    return outcome, message["log"]
