"""A selector as a query: states, time ranges, argument shapes."""

import json
import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from itertools import product
from math import prod

from tenure._model.ids import Json
from tenure._model.job import State
from tenure._model.selector import Argument, Bound, Comparison, JobView, Selector
from tenure.errors import InvalidValue

_MOST_SHAPES = 256
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]{0,17})(?:\.[0-9]{1,18})?")
_CONSTANTS: Mapping[str, Json] = {"true": True, "false": False, "null": None}
_TICK = timedelta(microseconds=1)


_LACKING = {
    "ended": ("has not ended", {State.QUEUED, State.RUNNING}),
    "worker": ("has no worker", {State.QUEUED}),
    "error": ("has no error", {State.COMPLETED, State.CANCELLED}),
}


def states(selector: Selector) -> Sequence[State]:
    """Return the states that can match; raise InvalidValue if none can."""
    wanted = {view.state for view in selector.state} or {*State}
    fields = [name for name in _LACKING if getattr(selector, name)]
    left = wanted.difference(*(_LACKING[name][1] for name in fields))
    if not left:
        lacks = [name for name in fields if _LACKING[name][1] & wanted]
        raise InvalidValue(
            f"a {' or '.join(sorted(wanted))} job {' or '.join(_LACKING[n][0] for n in lacks)}; "
            f"name another state:, or omit {' and '.join(f'{name}:' for name in lacks)}"
        )
    return [state for state in State if state in left]


def views(selector: Selector, state: State) -> Sequence[JobView] | None:
    """Return the selected parts of a state. None means the whole state."""
    parts = [view for view in selector.state if view.state is state]
    return None if not parts or JobView(state) in parts else parts


def between(bounds: Sequence[Bound], now: datetime) -> tuple[datetime | None, datetime | None]:
    """Return the first instant in a range, and the first one after it."""
    first: datetime | None = None
    after: datetime | None = None
    for bound in bounds:
        match bound:
            case Bound(comparing, timedelta() as ago):
                comparing, instant = _EARLIER[comparing], now - ago
            case Bound(comparing, datetime() as instant):
                pass
            case _:
                continue
        if comparing in (Comparison.ABOVE, Comparison.AT_LEAST):
            first = instant + _TICK if comparing is Comparison.ABOVE else instant
        else:
            after = instant + _TICK if comparing is Comparison.AT_MOST else instant
    return first, after


# Longer ago means earlier.
_EARLIER = {
    Comparison.ABOVE: Comparison.BELOW,
    Comparison.AT_LEAST: Comparison.AT_MOST,
    Comparison.BELOW: Comparison.ABOVE,
    Comparison.AT_MOST: Comparison.AT_LEAST,
}


def numbers(bounds: Sequence[Bound]) -> tuple[int | None, int | None]:
    """Return the smallest and largest number in a range."""
    least: int | None = None
    greatest: int | None = None
    for bound in bounds:
        match bound:
            case Bound(Comparison.EQUAL, int() as number):
                least = greatest = number
            case Bound(Comparison.ABOVE | Comparison.AT_LEAST as comparing, int() as number):
                least = number + (comparing is Comparison.ABOVE)
            case Bound(comparing, int() as number):
                greatest = number - (comparing is Comparison.BELOW)
            case _:
                pass
    return least, greatest


def shapes(arguments: Sequence[Argument]) -> Sequence[Json] | None:
    """Return objects, at least one of which matching arguments contain. None means all match."""
    if not arguments:
        return None
    each = [
        [(one.path, value) for text in one.values for value in _readings(text)] for one in arguments
    ]
    if (count := prod(map(len, each))) > _MOST_SHAPES:
        raise InvalidValue(
            f"args. in the selector must have at most {_MOST_SHAPES} combinations of values, "
            f"got {count:,}; give fewer"
        )
    return [_whole(parts) for parts in product(*each)]


def _readings(text: str) -> Sequence[Json]:
    if text in _CONSTANTS:
        return [text, _CONSTANTS[text]]
    if _NUMBER.fullmatch(text):
        return [text, json.loads(text)]
    return [text]


def _whole(parts: Sequence[tuple[Sequence[str], Json]]) -> dict[str, Json]:
    """Return one object with all values at their paths."""
    whole: dict[str, Json] = {}
    for path, value in parts:
        at = whole
        for name in path[:-1]:
            at = at.setdefault(name, {})
            if not isinstance(at, dict):
                raise _nested()
        if path[-1] in at:
            raise _nested()
        at[path[-1]] = value
    return whole


def _nested() -> InvalidValue:
    return InvalidValue("one args. of the selector is inside another; omit one of them")
