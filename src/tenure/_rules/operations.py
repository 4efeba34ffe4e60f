"""What may be an operation: its filter, its changes, its rate; and the size of its chunks."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any

from tenure._model.ids import Json
from tenure._model.job import PRIORITIES, State
from tenure._model.operation import (
    Changes,
    Filter,
    NewOperation,
    OperationKind,
    OperationRow,
    OperationState,
)
from tenure._rules import payload
from tenure._rules.values import dump
from tenure.errors import InvalidValue

MOST_ITEMS = 1_000_000
MOST_IDS = 10_000
DEFAULT_RATE = 500
FASTEST = 10_000
_LONGEST_CHUNK = 1000
_INSTANTS = ("created_after", "created_before", "ended_after", "ended_before")
_LIVE = (State.QUEUED, State.RUNNING)
# Which states the members of an operation can have, by its kind.
_STATES: Mapping[OperationKind, Sequence[State]] = {
    OperationKind.RETRY: (State.FAILED,),
    OperationKind.CANCEL: _LIVE,
    OperationKind.DISCARD: (State.FAILED,),
    OperationKind.DELETE: (State.COMPLETED, State.CANCELLED, State.FAILED),
    OperationKind.MOVE: (State.QUEUED,),
}


def check(new: NewOperation) -> None:
    """Refuse an operation that could not be done (InvalidValue)."""
    if not 1 <= new.rate <= FASTEST:
        raise InvalidValue(f"a rate of {new.rate} is not within 1 to {FASTEST:,} jobs per second")
    _check_filter(new)
    if new.kind is OperationKind.MOVE:
        check_changes(new.changes or Changes())
    elif new.changes is not None:
        raise InvalidValue(f"changes are for a move, not for a {new.kind}; leave them away")


def check_changes(changes: Changes) -> None:
    """Refuse a move that leads nowhere."""
    if changes == Changes():
        raise InvalidValue(
            "nothing is said that a move should change; give a queue, a priority or run_at"
        )
    if changes.queue is not None:
        payload.check_name(changes.queue, "queue")
    if changes.priority is not None and changes.priority not in PRIORITIES:
        raise InvalidValue(
            f"priority {changes.priority} is not within 0 to 9; 9 is the most urgent"
        )
    if changes.run_at is not None:
        _check_aware(changes.run_at, "run_at")


def _check_filter(new: NewOperation) -> None:
    said = new.filter
    for name in _INSTANTS:
        if (instant := getattr(said, name)) is not None:
            _check_aware(instant, name)
    for name in ("queue", "task", "signature"):
        if (text := getattr(said, name)) is not None:
            payload.check_text(text, name)
    if said.ids is not None:
        _check_ids(said)
        return
    states = states_of(new)
    if said.signature is not None and states != [State.FAILED]:
        raise InvalidValue("only dead letters have the signature of an error; leave it away")
    ended = said.ended_after is not None or said.ended_before is not None
    if ended and any(state.is_live for state in states):
        raise InvalidValue(
            f"what is {states[0]} has not ended; use created_after or created_before"
        )


def _check_ids(said: Filter) -> None:
    ids = said.ids or ()
    if said != Filter(ids=said.ids):
        raise InvalidValue("ids name the jobs themselves; leave the rest of the filter away")
    if not 1 <= len(ids) <= MOST_IDS:
        raise InvalidValue(
            f"{len(ids):,} ids are not within 1 to {MOST_IDS:,}; use a filter for more"
        )
    if not all(0 < job_id < 2**63 for job_id in ids):
        raise InvalidValue("an id is not one of a job; ids are numbers from 1 on")


def _check_aware(instant: datetime, what: str) -> None:
    if instant.tzinfo is None:
        raise InvalidValue(f"{what} has no time zone; attach one, as in datetime(…, tzinfo=UTC)")


def states_of(new: NewOperation) -> list[State]:
    """The states of the jobs that an operation is for; a delete must say which."""
    allowed, said = _STATES[new.kind], new.filter.state
    if said is not None and said not in allowed:
        raise InvalidValue(
            f"what is {said} cannot be the subject of a {new.kind}; that is for jobs that are "
            f"{' or '.join(allowed)}"
        )
    if said is None and new.kind is OperationKind.DELETE:
        raise InvalidValue(f"a delete must say of which state; give one of {', '.join(allowed)}")
    return list(allowed) if said is None else [said]


def chunk(rate: int) -> int:
    """How many items one transaction takes: about half a second's, so that it is soon over."""
    return min(max(rate // 2, 1), _LONGEST_CHUNK)


def grown(most: int | None, rate: int) -> int | None:
    """How many the next chunk may take, after one that was made small has passed."""
    return None if most is None or 2 * most >= chunk(rate) else 2 * most


def steered(row: OperationRow, wanted: OperationState) -> OperationState:
    """The state that an operator's wish leads to; InvalidValue if the operation has ended."""
    if row.state.is_ended and row.state is not wanted:
        raise InvalidValue(f"operation {row.id} is {row.state}; start another one")
    if wanted is not OperationState.RUNNING:
        return wanted
    if row.state is not OperationState.PAUSED:
        return row.state
    return OperationState.PENDING if row.started_at is None else OperationState.RUNNING


def unknown(operation_id: int) -> InvalidValue:
    """The error for an operation that there is not."""
    return InvalidValue(f"there is no operation {operation_id}; see: tenure operation list")


def as_json(said: Filter | Changes | None) -> dict[str, Json] | None:
    """What is said of a filter or of changes, as JSON."""
    if said is None:
        return None
    return {name: dump(value) for name, value in asdict(said).items() if value is not None}


def filter_of(stored: Mapping[str, Json]) -> Filter:
    """The filter from its JSON."""
    fields: dict[str, Any] = dict(stored)
    for name in _INSTANTS:
        if name in fields:
            fields[name] = datetime.fromisoformat(fields[name])
    if "state" in fields:
        fields["state"] = State(fields["state"])
    return Filter(**fields)


def changes_of(stored: Mapping[str, Json] | None) -> Changes | None:
    """The changes from their JSON."""
    if stored is None:
        return None
    run_at = stored.get("run_at")
    return Changes(
        queue=stored.get("queue"),
        priority=stored.get("priority"),
        run_at=None if run_at is None else datetime.fromisoformat(run_at),
    )
