"""The selector language: parse it and write it.

The terms of a selector's text: a field, a colon, and values with commas between them.

What is not understood is refused with its place. A value is not repeated unless it is a plain word:
it may be a secret.

Selectors as text: `state:failed queue:mail,bulk created:<2h`, read and written.

One language for pages, the API's `filter` and the command line; docs/reference/selectors.md.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from tenure._model.selector import Argument, Bound, Comparison, JobView, Selector
from tenure._rules import payload
from tenure._rules.formatting import compact
from tenure.errors import InvalidValue, PayloadError

MOST_VALUES = 100
QUOTED = 'quote a value with spaces, commas or quotes, as in error:"no \\"route\\""'
_WORD = re.compile(r"[A-Za-z_.]{1,20}")


@dataclass(frozen=True, slots=True)
class Value:
    """A value as it was read, and where."""

    at: int
    text: str


@dataclass(frozen=True, slots=True)
class Term:
    """A field and its values as they were read, and where it begins."""

    at: int
    name: str
    values: tuple[Value, ...]


def terms(text: str) -> Iterator[Term]:
    """The terms in their order. What has no field before it has no values either."""
    at = 0
    while at < len(text):
        if text[at].isspace():
            at += 1
            continue
        start = at
        while at < len(text) and text[at] not in ':"' and not text[at].isspace():
            at += 1
        name, values = text[start:at], list[Value]()
        while text[at : at + 1] == ("," if values else ":"):
            value, at = _value(text, at + 1)
            values.append(value)
        if len(values) > MOST_VALUES:
            raise refused(start, f"{name}: has {len(values)} values", f"give at most {MOST_VALUES}")
        if not values and text[at : at + 1] == '"':
            raise refused(at, "a quotation has no field before it", QUOTED)
        yield Term(start, name, tuple(values))


def _value(text: str, at: int) -> tuple[Value, int]:
    """The value that begins here, and where what follows it is."""
    if text[at : at + 1] == '"':
        return _quoted(text, at)
    end = at
    while end < len(text) and text[end] != "," and not text[end].isspace():
        if text[end] == '"':
            raise refused(end, "a quotation begins within a value", QUOTED)
        end += 1
    if end == at:
        raise refused(at, "a value is missing", f"write it behind the colon or comma; {QUOTED}")
    return Value(at, text[at:end]), end


def _quoted(text: str, at: int) -> tuple[Value, int]:
    said, end = list[str](), at + 1
    while text[end : end + 1] != '"':
        if text[end : end + 1] == "\\":
            end += 1
        if end >= len(text):
            raise refused(at, "a quotation does not end", QUOTED)
        said.append(text[end])
        end += 1
    end += 1
    if end < len(text) and text[end] != "," and not text[end].isspace():
        raise refused(end, "something stands right behind a quotation", QUOTED)
    if not said:
        raise refused(at, "a value is empty", "leave the field away, and any value matches")
    return Value(at, "".join(said)), end


def quoted(value: str) -> str:
    """A value as a term has it."""
    if any(char in ',"' or char.isspace() for char in value):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{escaped}"'
    return value


def shown(said: str) -> str:
    """What was read, if it is a plain word; else how long it is."""
    return f"'{said}'" if _WORD.fullmatch(said) else f"what stands there ({len(said)} characters)"


def refused(at: int, why: str, remedy: str) -> InvalidValue:
    """The error for what is not understood: where, why, and what to write."""
    return InvalidValue(f"the selector is not understood at character {at + 1}: {why}; {remedy}")


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
            return compact(value)
        case datetime():
            return value.isoformat().replace("+00:00", "Z")
        case _:
            return str(value)


def _text(value: Value) -> str:
    return value.text


def _view(value: Value) -> JobView:
    try:
        return JobView(value.text)
    except ValueError:
        known = f"there are: {', '.join(JobView)}"
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
    if bound.comparing is Comparison.EQUAL:
        return "both"
    up = bound.comparing in (Comparison.ABOVE, Comparison.AT_LEAST)
    return "floor" if up is not isinstance(bound.value, timedelta) else "ceiling"


def _compared(value: Value) -> tuple[Comparison, str]:
    said = value.text.lstrip("<>=")
    sign = value.text[: len(value.text) - len(said)]
    if sign not in list(Comparison):
        raise refused(value.at, "two values are compared by no such sign", "write >, >=, < or <=")
    return Comparison(sign), said


def _time(value: Value) -> Bound:
    comparing, said = _compared(value)
    if comparing is Comparison.EQUAL:
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
    elif term.name in list(JobView):
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
