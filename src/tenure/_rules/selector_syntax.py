"""The selector language. Errors give the position, and quote only plain words, never secrets."""

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
    at: int
    text: str


@dataclass(frozen=True, slots=True)
class Term:
    """A field, its values and its position."""

    at: int
    name: str
    values: tuple[Value, ...]


def terms(text: str) -> Iterator[Term]:
    """Yield the terms in order. A term without a field has no values."""
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
            raise refused(at, "a quoted value must follow a field", QUOTED)
        yield Term(start, name, tuple(values))


def _value(text: str, at: int) -> tuple[Value, int]:
    """Return the value that starts here, and the position after it."""
    if text[at : at + 1] == '"':
        return _quoted(text, at)
    end = at
    while end < len(text) and text[end] != "," and not text[end].isspace():
        if text[end] == '"':
            raise refused(end, "a quote begins inside a value", QUOTED)
        end += 1
    if end == at:
        raise refused(at, "a value is missing", f"write it after the colon or comma; {QUOTED}")
    return Value(at, text[at:end]), end


def _quoted(text: str, at: int) -> tuple[Value, int]:
    chars, end = list[str](), at + 1
    while text[end : end + 1] != '"':
        if text[end : end + 1] == "\\":
            end += 1
        if end >= len(text):
            raise refused(at, "a quote is not closed", QUOTED)
        chars.append(text[end])
        end += 1
    end += 1
    if end < len(text) and text[end] != "," and not text[end].isspace():
        raise refused(end, "a quoted value must be followed by a space or comma", QUOTED)
    if not chars:
        raise refused(at, "a value is empty", "omit the field to match any value")
    return Value(at, "".join(chars)), end


def quoted(value: str) -> str:
    """Return a value the way a term writes it."""
    if any(char in ',"' or char.isspace() for char in value):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{escaped}"'
    return value


def shown(text: str) -> str:
    """Return the text if it is a plain word, otherwise its length."""
    return f"'{text}'" if _WORD.fullmatch(text) else f"the text ({len(text)} characters)"


def refused(at: int, why: str, remedy: str) -> InvalidValue:
    """Return the error with its position, reason and remedy."""
    return InvalidValue(f"invalid selector at character {at + 1}: {why}; {remedy}")


LONGEST = 4000
EXAMPLE = 'state:failed task:mail.send created:<2h args.user.id:7 error:"no route"'
_ARGS = "args."
MASK = "…"
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
    """Parse a selector; raise InvalidValue with the position and reason."""
    if len(text) > LONGEST:
        raise InvalidValue(
            f"a selector must have at most {LONGEST:,} characters, got {len(text):,}"
        )
    try:
        payload.check_text(text, "selectors")
    except PayloadError as error:
        raise InvalidValue(str(error)) from None
    parsed: dict[str, Any] = {}
    for term in terms(text):
        name = term.name
        if not term.values:
            raise _bare(term)
        if name.startswith(_ARGS):
            parsed["args"] = (*parsed.get("args", ()), _argument(term, parsed.get("args", ())))
        elif name in _RANGES:
            parsed[name] = _with_bound(parsed.get(name, ()), term)
        elif name not in _LISTS:
            raise refused(term.at, f"there is no field {shown(name)}", _known(name))
        elif name in parsed:
            any_of = f"write its values with commas, as in {name}:a,b, to match any"
            raise refused(term.at, f"{name}: is given twice", any_of)
        else:
            parsed[name] = tuple(dict.fromkeys(_LISTS[name](value) for value in term.values))
    if "id" in parsed and len(parsed) > 1:
        raise InvalidValue("id: cannot be combined with other fields; omit the rest")
    return Selector(**parsed)


def text(selector: Selector) -> str:
    """Return the selector as text."""
    parts = []
    for field in fields(Selector):
        match getattr(selector, field.name):
            case ():
                pass
            case (Argument(), *_) as arguments:
                parts += [f"{_ARGS}{'.'.join(one.path)}:{_listed(one.values)}" for one in arguments]
            case (Bound(), *_) as bounds:
                parts += [f"{field.name}:{one.comparing}{_plain(one.value)}" for one in bounds]
            case values:
                parts.append(f"{field.name}:{_listed(values)}")
    return " ".join(parts)


def masked(selector: Selector) -> Selector:
    """Return the selector without the values of keys and arguments."""
    return replace(
        selector,
        key=selector.key and (MASK,),
        args=tuple(Argument(one.path, (MASK,)) for one in selector.args),
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
        known = f"states are {', '.join(JobView)}"
        raise refused(value.at, f"there is no state {shown(value.text)}", known) from None


def _id(value: Value) -> int:
    if re.fullmatch(r"[0-9]{1,19}", value.text) and 0 < int(value.text) < 2**63:
        return int(value.text)
    raise refused(value.at, f"{shown(value.text)} is not a job id", "write numbers, as in id:17,18")


def _argument(term: Term, others: tuple[Argument, ...]) -> Argument:
    path = tuple(term.name.removeprefix(_ARGS).split("."))
    if not all(path) or "," in term.name or len(path) > _DEEPEST:
        leads = f"name the path to the argument, at most {_DEEPEST} names, as in args.user.id:7"
        raise refused(term.at, "args. must be followed by a path", leads)
    if path in [other.path for other in others]:
        raise refused(term.at, "the same argument is given twice", "write its values with commas")
    return Argument(path, tuple(dict.fromkeys(value.text for value in term.values)))


def _with_bound(bounds: tuple[Bound, ...], term: Term) -> tuple[Bound, ...]:
    if len(term.values) > 1:
        both = f"for a range give it twice, as in {term.name}:>=… {term.name}:<…"
        raise refused(term.at, f"{term.name}: has several values", both)
    bound = _RANGES[term.name](term.values[0])
    if bounds and {_side(one) for one in (*bounds, bound)} != {"lower", "upper"}:
        raise refused(
            term.at,
            f"{term.name}: has this bound already",
            "a range has a lower and an upper bound",
        )
    return (*bounds, bound)


def _side(bound: Bound) -> str:
    """Return which end of a range this is. A longer time ago means an earlier time."""
    if bound.comparing is Comparison.EQUAL:
        return "both"
    up = bound.comparing in (Comparison.ABOVE, Comparison.AT_LEAST)
    return "lower" if up is not isinstance(bound.value, timedelta) else "upper"


def _compared(value: Value) -> tuple[Comparison, str]:
    operand = value.text.lstrip("<>=")
    sign = value.text[: len(value.text) - len(operand)]
    if sign not in list(Comparison):
        raise refused(value.at, "the comparison is not valid", "write >, >=, < or <=")
    return Comparison(sign), operand


def _time(value: Value) -> Bound:
    comparing, operand = _compared(value)
    if comparing is Comparison.EQUAL:
        raise refused(value.at, "a time needs >, >=, < or <=", _TIMES)
    if _DURATION.fullmatch(operand):
        return Bound(comparing, _ago(value, operand))
    try:
        instant = datetime.fromisoformat(
            f"{operand}T00:00Z" if _DAY.fullmatch(operand) else operand
        )
    except ValueError:
        raise refused(value.at, f"{shown(operand)} is not a time", _TIMES) from None
    if instant.tzinfo is None:
        raise refused(
            value.at, "an instant must have a time zone", f"end it with Z or an offset; {_TIMES}"
        )
    if not 1 < instant.year < 9999:
        raise refused(value.at, "the year is out of range", "write one from 2 to 9998")
    return Bound(comparing, instant.astimezone(UTC))


def _ago(value: Value, operand: str) -> timedelta:
    try:
        ago = sum((float(n) * _UNITS[unit] for n, unit in _PART.findall(operand)), timedelta())
    except OverflowError:
        ago = timedelta.max
    if ago > _LONGEST_AGO:
        raise refused(value.at, "the duration is more than a hundred years", _TIMES)
    return ago


def _number(value: Value) -> Bound:
    comparing, operand = _compared(value)
    if not re.fullmatch(r"[0-9]{1,5}", operand) or int(operand) > _MOST_ATTEMPTS:
        least = f"write a number from 0 to {_MOST_ATTEMPTS}, as in attempt:>=3"
        raise refused(value.at, f"{shown(operand)} is not a number of attempts", least)
    return Bound(comparing, int(operand))


def _bare(term: Term) -> InvalidValue:
    """Reject a word without a field, because a typo must not select jobs."""
    if term.name.isdigit():
        hint = f"for a job id, write id:{term.name}"
    elif term.name in list(JobView):
        hint = f"perhaps state:{term.name}"
    else:
        hint = "for a task, put task: in front of it"
    return refused(term.at, f"{shown(term.name)} has no field", f"{hint}; {_known('')}")


def _known(name: str) -> str:
    if name == "args":
        return "name the argument, as in args.user.id:7"
    return f"fields are {', '.join(FIELDS)}; as in {EXAMPLE}"


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
