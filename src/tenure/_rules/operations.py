"""Validation of operations (filter, changes, rate) and chunk sizes."""

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
# The states that an operation's members can have.
_STATES: Mapping[OperationKind, Sequence[State]] = {
    OperationKind.RETRY: (State.FAILED,),
    OperationKind.CANCEL: _LIVE,
    OperationKind.DISCARD: (State.FAILED,),
    OperationKind.DELETE: (State.COMPLETED, State.CANCELLED, State.FAILED),
    OperationKind.MOVE: (State.QUEUED,),
}


def check(new: NewOperation) -> None:
    check_rate(new.rate)
    if new.kind is OperationKind.BACKFILL:
        raise InvalidValue("a backfill belongs to a schedule; start it with schedules.backfill")
    if new.kind is OperationKind.ERASE:
        raise InvalidValue("an erasure covers jobs in every state; start it with admin.erase")
    _check_filter(new)
    if new.kind is OperationKind.MOVE:
        check_changes(new.changes or Changes())
    elif new.changes is not None:
        raise InvalidValue(f"changes are for a move, got a {new.kind}; omit them")


def check_rate(rate: int) -> None:
    if not 1 <= rate <= FASTEST:
        raise InvalidValue(f"rate must be 1 to {FASTEST:,} jobs per second, got {rate}")


def check_changes(changes: Changes) -> None:
    """Reject a move that changes nothing or has an invalid destination."""
    if changes == Changes():
        raise InvalidValue("a move must change something: give a queue, a priority or run_at")
    if changes.queue is not None:
        payload.check_name(changes.queue, "queue")
    if changes.priority is not None and changes.priority not in PRIORITIES:
        raise InvalidValue(
            f"priority must be 0 to 9 (9 is the most urgent), got {changes.priority}"
        )
    if changes.run_at is not None:
        _check_aware(changes.run_at, "run_at")


def _check_filter(new: NewOperation) -> None:
    given = new.filter
    if (given.schedule, given.since, given.until) != (None, None, None):
        raise InvalidValue("schedule, since and until are for backfills only; omit them")
    for name in _INSTANTS:
        if (instant := getattr(given, name)) is not None:
            _check_aware(instant, name)
    for name in ("queue", "task", "signature"):
        if (text := getattr(given, name)) is not None:
            payload.check_text(text, name)
    if given.ids is not None:
        _check_ids(given)
        return
    states = states_of(new)
    if given.selector is not None:
        _check_selector(given, states)
    if given.signature is not None and states != [State.FAILED]:
        raise InvalidValue("only dead letters have an error signature; omit it")


def _check_selector(given: Filter, states: Sequence[State]) -> None:
    selector = selector_syntax.parse(given.selector or "")
    if given != Filter(selector=given.selector, queue=given.queue) or given.queue not in (
        None,
        *selector.queue,
    ):
        raise InvalidValue(
            "a filter with a selector takes no other field but its queue; omit the rest"
        )
    if selector.id:
        raise InvalidValue("the filter has a field for ids; use it instead of the selector")
    if selector.error and any(state.is_live for state in states):
        raise InvalidValue(
            "an operation on live jobs cannot select by error: it would have to look up all their "
            "last attempts; omit it, or give the ids"
        )


def _check_ids(given: Filter) -> None:
    ids = given.ids or ()
    if given != Filter(ids=given.ids):
        raise InvalidValue("a filter with ids takes no other field; omit the rest")
    if not 1 <= len(ids) <= MOST_IDS:
        raise InvalidValue(
            f"ids must be 1 to {MOST_IDS:,}, got {len(ids):,}; use a filter for more"
        )
    if not all(0 < job_id < 2**63 for job_id in ids):
        raise InvalidValue("each id must be a job id: a number from 1 on")


def _check_aware(instant: datetime, name: str) -> None:
    if instant.tzinfo is None:
        raise InvalidValue(
            f"{name} must have a time zone, got {instant}; write datetime(…, tzinfo=UTC)"
        )


def states_of(new: NewOperation) -> list[State]:
    """Return the states that an operation covers. A delete must name one explicitly."""
    allowed, selector = _STATES[new.kind], selector_of(new.filter)
    named = {view.state for view in selector.state}
    for state in State:
        if state in named and state not in allowed:
            raise InvalidValue(
                f"the state of a {new.kind} must be {' or '.join(allowed)}, got {state}"
            )
    effective = selector if named else replace(selector, state=tuple(map(JobView, allowed)))
    states = list(selector_query.states(effective))
    if len(states) > 1 and new.kind is OperationKind.DELETE:
        raise InvalidValue(f"a delete must name one state: {', '.join(allowed)}")
    return states


def selector_of(given: Filter) -> Selector:
    """Return a filter as a selector, without the signature, which selectors can't express."""
    if given.selector is not None:
        return selector_syntax.parse(given.selector)
    return Selector(
        state=() if given.state is None else (JobView(given.state),),
        queue=() if given.queue is None else (given.queue,),
        task=() if given.task is None else (given.task,),
        created=_range(given.created_after, given.created_before),
        ended=_range(given.ended_after, given.ended_before),
    )


def _range(after: datetime | None, before: datetime | None) -> tuple[Bound, ...]:
    sides = (Comparison.AT_LEAST, after), (Comparison.BELOW, before)
    return tuple(Bound(comparing, at) for comparing, at in sides if at is not None)


def selected(selector: Selector) -> Filter:
    """Return the filter for an operation on a selector's jobs."""
    if selector.id:
        return Filter(ids=selector.id)
    if selector == Selector():
        return Filter()
    only = selector.queue[0] if len(selector.queue) == 1 else None
    return Filter(selector=selector_syntax.text(selector), queue=only)


def chunk(rate: int) -> int:
    """Return how many items one transaction takes: half a second's worth, to keep it short."""
    return min(max(rate // 2, 1), _LONGEST_CHUNK)


def grown(most: int | None, rate: int) -> int | None:
    """Return the next chunk's size after a reduced one has passed."""
    return None if most is None or 2 * most >= chunk(rate) else 2 * most


def steered(row: OperationRow, wanted: OperationState) -> OperationState:
    """Return the operation's next state; raise InvalidValue if it has ended."""
    if row.state.is_ended and row.state is not wanted:
        raise InvalidValue(f"operation {row.id} is {row.state}; start another one")
    if wanted is not OperationState.RUNNING:
        return wanted
    if row.state is not OperationState.PAUSED:
        return row.state
    return OperationState.PENDING if row.started_at is None else OperationState.RUNNING


def unknown(operation_id: int) -> InvalidValue:
    return InvalidValue(
        f"operation {operation_id} does not exist; list them with: tenure operation list"
    )


def as_json(given: Filter | Changes | None) -> dict[str, Json] | None:
    """Return the fields that are set, as JSON."""
    if given is None:
        return None
    fields = {name: dump(value) for name, value in asdict(given).items() if value is not None}
    if "selector" in fields:
        # Later readers of this may not be allowed to read payloads.
        fields["selector"] = selector_syntax.text(
            selector_syntax.masked(selector_syntax.parse(fields["selector"]))
        )
    return fields


def filter_of(stored: Mapping[str, Json]) -> Filter:
    fields: dict[str, Any] = dict(stored)
    for name in _INSTANTS:
        if name in fields:
            fields[name] = datetime.fromisoformat(fields[name])
    if "state" in fields:
        fields["state"] = State(fields["state"])
    return Filter(**fields)


def changes_of(stored: Mapping[str, Json] | None) -> Changes | None:
    if stored is None:
        return None
    run_at = stored.get("run_at")
    return Changes(
        queue=stored.get("queue"),
        priority=stored.get("priority"),
        run_at=None if run_at is None else datetime.fromisoformat(run_at),
    )
