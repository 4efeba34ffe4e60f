"""What may be an operation: its filter, its changes, its rate; and the size of its chunks."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
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
from tenure._model.selector import Bound, Comparison, JobView, Selector
from tenure._rules import payload, selector_query, selector_syntax
from tenure._rules.serialization import dump
from tenure.errors import InvalidValue

MOST_ITEMS = 1_000_000
MOST_IDS = 10_000
DEFAULT_RATE = 500
FASTEST = 10_000
_LONGEST_CHUNK = 1000
_INSTANTS = ("created_after", "created_before", "ended_after", "ended_before", "since", "until")
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
    """Refuse an operation on jobs that could not be done (InvalidValue)."""
    check_rate(new.rate)
    if new.kind is OperationKind.BACKFILL:
        raise InvalidValue("a backfill is of a schedule; start it there: schedules.backfill")
    _check_filter(new)
    if new.kind is OperationKind.MOVE:
        check_changes(new.changes or Changes())
    elif new.changes is not None:
        raise InvalidValue(f"changes are for a move, not for a {new.kind}; leave them away")


def check_rate(rate: int) -> None:
    """Refuse a rate at which nothing would be done, or too much."""
    if not 1 <= rate <= FASTEST:
        raise InvalidValue(f"a rate of {rate} is not within 1 to {FASTEST:,} jobs per second")


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
    if (said.schedule, said.since, said.until) != (None, None, None):
        raise InvalidValue("schedule, since and until are a backfill's; leave them away")
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
    if said.selector is not None:
        _check_selector(said, states)
    if said.signature is not None and states != [State.FAILED]:
        raise InvalidValue("only dead letters have the signature of an error; leave it away")


def _check_selector(said: Filter, states: Sequence[State]) -> None:
    selector = selector_syntax.parse(said.selector or "")
    if said != Filter(selector=said.selector, queue=said.queue) or said.queue not in (
        None,
        *selector.queue,
    ):
        raise InvalidValue("a selector says it all; leave the rest of the filter away")
    if selector.id:
        raise InvalidValue("the filter has a field for ids; leave the selector away")
    if selector.error and any(state.is_live for state in states):
        raise InvalidValue(
            "an operation on live jobs takes no error: their last attempts would all have to be "
            "looked up; leave it away, or give the ids"
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
    allowed, selector = _STATES[new.kind], selector_of(new.filter)
    said = {view.state for view in selector.state}
    for state in State:
        if state in said and state not in allowed:
            raise InvalidValue(
                f"what is {state} cannot be the subject of a {new.kind}; that is for jobs that are "
                f"{' or '.join(allowed)}"
            )
    meant = selector if said else replace(selector, state=tuple(map(JobView, allowed)))
    found = list(selector_query.states(meant))
    if len(found) > 1 and new.kind is OperationKind.DELETE:
        raise InvalidValue(f"a delete must say of which state; give one of {', '.join(allowed)}")
    return found


def selector_of(said: Filter) -> Selector:
    """What a filter says, as a selector; but for the signature, which is no more than itself."""
    if said.selector is not None:
        return selector_syntax.parse(said.selector)
    return Selector(
        state=() if said.state is None else (JobView(said.state),),
        queue=() if said.queue is None else (said.queue,),
        task=() if said.task is None else (said.task,),
        created=_range(said.created_after, said.created_before),
        ended=_range(said.ended_after, said.ended_before),
    )


def _range(after: datetime | None, before: datetime | None) -> tuple[Bound, ...]:
    sides = (Comparison.AT_LEAST, after), (Comparison.BELOW, before)
    return tuple(Bound(comparing, at) for comparing, at in sides if at is not None)


def selected(selector: Selector) -> Filter:
    """The filter of an operation on what a selector means."""
    if selector.id:
        return Filter(ids=selector.id)
    if selector == Selector():
        return Filter()
    only = selector.queue[0] if len(selector.queue) == 1 else None
    return Filter(selector=selector_syntax.text(selector), queue=only)


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
    fields = {name: dump(value) for name, value in asdict(said).items() if value is not None}
    if "selector" in fields:
        # The members are frozen; who reads this later need not be one who reads payloads.
        fields["selector"] = selector_syntax.text(
            selector_syntax.masked(selector_syntax.parse(fields["selector"]))
        )
    return fields


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
