"""What a child and the process of one handler say to each other: JSON, one message per line.

No pickle: a message holds plain values, and each side rebuilds only what it names itself.
"""

import json
from typing import Any

from tenure._model.ids import Json
from tenure._model.job import JobRow, NewJob
from tenure._model.lease import Lease
from tenure._model.outcome import Cancelled, Failed, Outcome, Released, Snoozed, Succeeded
from tenure._rules import values
from tenure.job import Grip

_OUTCOMES: dict[str, type[Outcome]] = {
    kind.__name__: kind for kind in (Succeeded, Failed, Snoozed, Released, Cancelled)
}


def encode(message: dict[str, Json]) -> bytes:
    """One message as a line."""
    return json.dumps(message, ensure_ascii=True, default=str).encode() + b"\n"


def decode(line: bytes) -> dict[str, Any]:
    """The message in a line."""
    message: dict[str, Any] = json.loads(line)
    return message


def run(row: JobRow, lease: Lease) -> dict[str, Json]:
    """To the process: run this job under this lease."""
    return {"run": values.dump(row), "lease": values.dump(lease)}


def read_run(message: dict[str, Any]) -> tuple[JobRow, Lease]:
    """The job and the lease of a `run`."""
    row: JobRow = values.load(message["run"], JobRow)
    lease: Lease = values.load(message["lease"], Lease)
    return row, lease


def ended(outcome: Outcome, log: str | None, grip: Grip) -> dict[str, Json]:
    """To the child: the handler has ended so."""
    return {
        "ended": type(outcome).__name__,
        "outcome": values.dump(outcome),
        "log": log,
        "settled": grip.settled,
        "handed_over": grip.handed_over,
        "follow_ups": [values.dump(job) for job in grip.follow_ups],
    }


def read_ended(message: dict[str, Any], grip: Grip) -> tuple[Outcome, str | None]:
    """The outcome and log of an `ended`; what the handler did through its handle is noted."""
    grip.settled = message["settled"]
    grip.handed_over = message["handed_over"]
    grip.follow_ups = [values.load(job, NewJob) for job in message["follow_ups"]]
    outcome: Outcome = values.load(message["outcome"], _OUTCOMES[message["ended"]])
    return outcome, message["log"]
