"""Selectors as text: `state:failed queue:mail,bulk created:<2h`, read and written.

One language for pages, the API's `filter` and the command line; docs/reference/selectors.md.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from tenure._model.selector import Argument, Bound, Comparing, Selector, View
from tenure._rules import payload
from tenure._rules.terms import Term, Value, quoted, refused, shown, terms
from tenure.errors import InvalidValue, PayloadError

LONGEST = 4000
EXAMPLE = 'state:failed task:mail.send created:<2h args.user.id:7 error:"no route"'
_ARGS = "args."
_MASK = ("…",)
_DEEPEST = 10
_UNITS = {
    "d": timedelta(days=1),
    "h": timedelta(hours=1),
    "m": timedelta(minutes=1),
    "s": timedelta(seconds=1),
}
_PART = re.compile(r"([0-9]+(?:\.[0-9]+)?)([smhd])")
_DURATION = re.compile(r"(?:[0-9]+(?:\.[0-9]+)?[smhd])+")
_LONGEST_AGO = timedelta(days=36_500)
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_TIMES = "as in created:<2h (less than two hours ago), ended:>=2030-01-31T09:00Z, due:<2030-02-01"
_MOST_ATTEMPTS = 32_767


def parse(text: str) -> Selector:
    """The selector that a text says; InvalidValue, with where and why, if it says none."""
    if len(text) > LONGEST:
        raise InvalidValue(f"a selector has at most {LONGEST:,} characters; this has {len(text):,}")
    try:
        payload.check_text(text, "a selector")
    except PayloadError as error:
        raise InvalidValue(str(error)) from None
    said: dict[str, Any] = {}
    for term in terms(text):
        name = term.name
        if not term.values:
            raise _bare(term)
        if name.startswith(_ARGS):
            said["args"] = (*said.get("args", ()), _argument(term, said.get("args", ())))
        elif name in _RANGES:
            said[name] = _with_bound(said.get(name, ()), term)
        elif name not in _LISTS:
            raise refused(term.at, f"there is no field {shown(name)}", _known(name))
        elif name in said:
            any_of = f"write its values with commas, as in {name}:a,b: any of them"
            raise refused(term.at, f"{name}: is said twice", any_of)
        else:
            said[name] = tuple(dict.fromkeys(_LISTS[name](value) for value in term.values))
    if "id" in said and len(said) > 1:
        raise InvalidValue("id: names the jobs themselves; leave the rest of the selector away")
    return Selector(**said)


def text(selector: Selector) -> str:
    """The selector as the text that says it."""
    said = []
    for field in fields(Selector):
        match getattr(selector, field.name):
            case ():
                pass
            case (Argument(), *_) as arguments:
                said += [f"{_ARGS}{'.'.join(one.path)}:{_listed(one.values)}" for one in arguments]
            case (Bound(), *_) as bounds:
                said += [f"{field.name}:{one.comparing}{_plain(one.value)}" for one in bounds]
            case values:
                said.append(f"{field.name}:{_listed(values)}")
    return " ".join(said)


def masked(selector: Selector) -> Selector:
    """The selector without the values of keys and arguments."""
    return replace(
        selector,
        key=selector.key and _MASK,
        args=tuple(Argument(one.path, _MASK) for one in selector.args),
    )


def _listed(values: tuple[Any, ...]) -> str:
    return ",".join(quoted(str(value)) for value in values)


def _plain(value: int | datetime | timedelta) -> str:
    match value:
        case timedelta():
            return _lasting(value)
        case datetime():
            return value.isoformat().replace("+00:00", "Z")
        case _:
            return str(value)


def _lasting(ago: timedelta) -> str:
    """A duration in its units, the largest first."""
    parts = []
    for unit in ("d", "h", "m"):
        count, ago = divmod(ago, _UNITS[unit])
        if count:
            parts.append(f"{count}{unit}")
    if ago or not parts:
        parts.append(f"{ago.seconds}.{ago.microseconds:06}".rstrip("0").rstrip(".") + "s")
    return "".join(parts)


def _text(value: Value) -> str:
    return value.text


def _view(value: Value) -> View:
    try:
        return View(value.text)
    except ValueError:
        known = f"there are: {', '.join(View)}"
        raise refused(value.at, f"there is no state {shown(value.text)}", known) from None


def _id(value: Value) -> int:
    if re.fullmatch(r"[0-9]{1,19}", value.text) and 0 < int(value.text) < 2**63:
        return int(value.text)
    raise refused(
        value.at, f"{shown(value.text)} is no id of a job", "ids are numbers, as in id:17,18"
    )


def _argument(term: Term, others: tuple[Argument, ...]) -> Argument:
    path = tuple(term.name.removeprefix(_ARGS).split("."))
    if not all(path) or "," in term.name or len(path) > _DEEPEST:
        leads = f"name what leads to the argument, at most {_DEEPEST} names, as in args.user.id:7"
        raise refused(term.at, "args. is followed by no path", leads)
    if path in [other.path for other in others]:
        raise refused(term.at, "the same argument is said twice", "write its values with commas")
    return Argument(path, tuple(dict.fromkeys(value.text for value in term.values)))


def _with_bound(bounds: tuple[Bound, ...], term: Term) -> tuple[Bound, ...]:
    """The bounds of a range with one more."""
    if len(term.values) > 1:
        both = f"for a range say it twice, as in {term.name}:>=… {term.name}:<…"
        raise refused(term.at, f"{term.name}: has several values", both)
    bound = _RANGES[term.name](term.values[0])
    if bounds and {_side(one) for one in (*bounds, bound)} != {"floor", "ceiling"}:
        raise refused(
            term.at, f"{term.name}: has this side already", "a range has a floor and a ceiling"
        )
    return (*bounds, bound)


def _side(bound: Bound) -> str:
    """Which side of a range it is; longer ago is earlier."""
    if bound.comparing is Comparing.EQUAL:
        return "both"
    up = bound.comparing in (Comparing.ABOVE, Comparing.AT_LEAST)
    return "floor" if up is not isinstance(bound.value, timedelta) else "ceiling"


def _compared(value: Value) -> tuple[Comparing, str]:
    said = value.text.lstrip("<>=")
    sign = value.text[: len(value.text) - len(said)]
    if sign not in list(Comparing):
        raise refused(value.at, "two values are compared by no such sign", "write >, >=, < or <=")
    return Comparing(sign), said


def _time(value: Value) -> Bound:
    comparing, said = _compared(value)
    if comparing is Comparing.EQUAL:
        raise refused(value.at, "a time is compared with >, >=, < or <=", _TIMES)
    if _DURATION.fullmatch(said):
        return Bound(comparing, _ago(value, said))
    try:
        instant = datetime.fromisoformat(f"{said}T00:00Z" if _DAY.fullmatch(said) else said)
    except ValueError:
        raise refused(value.at, f"{shown(said)} is no time", _TIMES) from None
    if instant.tzinfo is None:
        raise refused(
            value.at, "an instant has no time zone", f"end it with Z or an offset; {_TIMES}"
        )
    if not 1 < instant.year < 9999:
        raise refused(value.at, "a year is at the end of the calendar", "name one from 2 to 9998")
    return Bound(comparing, instant.astimezone(UTC))


def _ago(value: Value, said: str) -> timedelta:
    try:
        ago = sum((float(n) * _UNITS[unit] for n, unit in _PART.findall(said)), timedelta())
    except OverflowError:
        ago = timedelta.max
    if ago > _LONGEST_AGO:
        raise refused(value.at, "that is more than a hundred years ago", _TIMES)
    return ago


def _number(value: Value) -> Bound:
    comparing, said = _compared(value)
    if not re.fullmatch(r"[0-9]{1,5}", said) or int(said) > _MOST_ATTEMPTS:
        least = f"write a number from 0 to {_MOST_ATTEMPTS}, as in attempt:>=3"
        raise refused(value.at, f"{shown(said)} is no number of attempts", least)
    return Bound(comparing, int(said))


def _bare(term: Term) -> InvalidValue:
    """A word alone means nothing: what would be searched for is what a slip of the hand makes."""
    if term.name.isdigit():
        hint = "for a job by its id, write id: before it"
    elif term.name in list(View):
        hint = f"perhaps state:{term.name}"
    else:
        hint = "for a task, write task: before it"
    return refused(term.at, f"{shown(term.name)} has no field before it", f"{hint}; {_known('')}")


def _known(name: str) -> str:
    if name == "args":
        return "name the argument, as in args.user.id:7"
    return f"there are: {', '.join(FIELDS)}; as in {EXAMPLE}"


_LISTS: Mapping[str, Callable[[Value], Any]] = {
    "state": _view,
    **dict.fromkeys(("queue", "task", "tag", "worker"), _text),
    "id": _id,
    **dict.fromkeys(("key", "error"), _text),
}
_RANGES: Mapping[str, Callable[[Value], Bound]] = {
    **dict.fromkeys(("created", "due", "ended"), _time),
    "attempt": _number,
}
FIELDS: tuple[str, ...] = (*_LISTS, "args.…", *_RANGES)
