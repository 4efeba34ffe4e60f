"""Convert Python values to JSON and back. Only annotated types are rebuilt."""

import dataclasses
import types
import typing
from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from functools import lru_cache
from typing import Any, NewType, Union
from uuid import UUID

from tenure._model.ids import Json
from tenure._rules.payload import MAX_DEPTH
from tenure.errors import PayloadError

_SCALARS = {type(None), bool, int, float, str}


def dump(value: object, *, depth: int = 0) -> Json:
    """Return the value in JSON form. The payload check rejects values that don't have one."""
    if depth > MAX_DEPTH or type(value) in _SCALARS:
        return value
    match value:
        case int() | float() | str() if not isinstance(value, Enum):
            return value
        case Enum():
            return dump(value.value)
        case datetime() | date():
            return value.isoformat()
        case UUID() | Decimal():
            return str(value)
        case timedelta():
            return value.total_seconds()
        case Mapping():
            return {name: dump(item, depth=depth + 1) for name, item in value.items()}
        case list() | tuple():
            return [dump(item, depth=depth + 1) for item in value]
        case _:
            return _dump_object(value, depth)


def _dump_object(value: object, depth: int) -> Json:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {
            f.name: dump(getattr(value, f.name), depth=depth + 1)
            for f in dataclasses.fields(value)
            if f.init
        }
    if _is_model(type(value)):
        model: Any = value
        return model.model_dump(mode="json")
    return value


def load(value: Json, kind: Any, *, what: str = "the value") -> Any:
    """Rebuild a value using its annotation. Raise PayloadError if it doesn't fit."""
    try:
        return _load(value, kind, what)
    except Exception as error:  # whatever a class raises while being rebuilt
        raise PayloadError(f"{what} does not fit {_named(kind)}: {error}") from error


def mismatch(value: object, dumped: Json, kind: Any) -> str | None:
    """Return why a value doesn't fit a plain annotation.

    Omit the value itself, which may be secret.
    """
    if value is None or type(value) is kind or not isinstance(kind, type):
        return None
    if kind in _PLAIN:
        # A value without a JSON form is rejected elsewhere, with a better message.
        fits = isinstance(dumped, _PLAIN[kind]) or not isinstance(dumped, _JSON)
    elif _is_rebuilt(kind) and not isinstance(value, kind):
        try:
            _load(dumped, kind, "")
            fits = True
        except Exception:  # noqa: BLE001 - whatever a class raises while it is rebuilt
            fits = False
    else:
        fits = True
    return None if fits else f"{_a(type(value))}, not {_a(kind)}"


def argument_mismatch(value: object, dumped: Json, kind: Any) -> str | None:
    """Return why a value won't fit its annotation once stored, or None if it will."""
    if value is None:
        return None if _takes_none(kind) else f"None, not {_label(kind)}"
    if isinstance(kind, type):
        return mismatch(value, dumped, kind)
    if kind is None or not isinstance(dumped, _JSON):
        return None
    try:
        _load(dumped, kind, "")
    except Exception:  # noqa: BLE001 - whatever a class raises while it is rebuilt
        return f"{_a(type(value))}, not {_label(kind)}"
    return None


def accepted_types(kind: Any) -> frozenset[type]:
    """Return types whose values fit an annotation without further checks, for speed."""
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin in (Union, types.UnionType):
        return frozenset().union(*map(accepted_types, inner))
    if origin in (list, dict) and isinstance(inner[-1], type) and inner[-1] in _PLAIN:
        return frozenset({origin})
    return frozenset({kind} if isinstance(kind, type) and kind in _SCALARS else ())


def _takes_none(kind: Any) -> bool:
    """Return whether None may be passed. If that isn't known, return True."""
    origin = typing.get_origin(kind)
    if origin in (Union, types.UnionType):
        return any(map(_takes_none, typing.get_args(kind)))
    if origin is typing.Annotated:
        return _takes_none(typing.get_args(kind)[0])
    if isinstance(kind, NewType):
        return _takes_none(kind.__supertype__)
    judged = kind if origin is None else origin
    if judged in (tuple, Sequence, Mapping):
        return False
    return not isinstance(judged, type) or not (judged in _PLAIN or _is_rebuilt(judged))


def _label(kind: Any) -> str:
    return _a(kind) if isinstance(kind, type) else str(kind).replace("typing.", "")


def _is_rebuilt(kind: type) -> bool:
    return (
        kind in (datetime, date, timedelta, UUID, Decimal)
        or issubclass(kind, Enum)
        or dataclasses.is_dataclass(kind)
        or _is_model(kind)
    )


def _a(kind: type) -> str:
    name = kind.__name__
    return f"an {name}" if name[0] in "aeiouAEIOU" else f"a {name}"


def _load(value: Json, kind: Any, what: str) -> Any:
    origin = typing.get_origin(kind)
    if origin is typing.Annotated:
        return _load(value, typing.get_args(kind)[0], what)
    if origin in (Union, types.UnionType):
        return _load_union(value, typing.get_args(kind), what)
    if origin is not None:
        return _load_generic(value, origin, typing.get_args(kind), what)
    if isinstance(kind, NewType):
        return _load(value, kind.__supertype__, what)
    if kind is type(None) and value is not None:
        raise TypeError(f"{value!r} is not None")
    if not isinstance(kind, type) or value is None:
        return value
    if kind in (datetime, date):
        return kind.fromisoformat(value)
    if kind is timedelta:
        return timedelta(seconds=value)
    if kind in (UUID, Decimal) or (issubclass(kind, Enum) and not isinstance(value, kind)):
        return kind(value)
    if dataclasses.is_dataclass(kind):
        return _load_dataclass(value, kind, what)
    if _is_model(kind):
        return kind.model_validate(value)  # type: ignore[attr-defined]
    return value


_JSON = (str, int, float, list, dict)
# To a type checker, an int is a float.
_PLAIN: Mapping[Any, Any] = {
    str: str,
    int: int,
    float: (int, float),
    bool: bool,
    list: list,
    dict: dict,
}


def _load_union(value: Json, kinds: Sequence[Any], what: str) -> Any:
    """Load as the first member that fits; None only as itself."""
    if value is None and type(None) in kinds:
        return None
    reasons = []
    for kind in kinds:
        if kind in _PLAIN and not isinstance(value, _PLAIN[kind]):
            continue
        try:
            return _load(value, kind, what)
        except Exception as error:  # noqa: BLE001 - as above
            reasons.append(str(error))
    raise TypeError("; ".join(reasons) or f"{value!r} fits no member")


def _load_generic(value: Json, origin: Any, inner: Sequence[Any], what: str) -> Any:
    if value is None:
        return None
    if origin in (list, Sequence):
        return [_load(item, inner[0], what) for item in _shaped(value, list)]
    if origin is tuple:
        items = _shaped(value, list)
        if len(inner) == 2 and inner[1] is Ellipsis:
            return tuple(_load(item, inner[0], what) for item in items)
        return tuple(_load(item, k, what) for item, k in zip(items, inner, strict=True))
    if origin in (dict, Mapping):
        pairs = _shaped(value, dict).items()
        return {name: _load(item, inner[1], what) for name, item in pairs}
    if dataclasses.is_dataclass(origin) or (isinstance(origin, type) and _is_model(origin)):
        return _load(value, origin, what)
    return value


def _shaped(value: Json, shape: type) -> Any:
    if not isinstance(value, shape):
        raise TypeError(f"{value!r} is not {'an object' if shape is dict else 'a list'}")
    return value


def _load_dataclass(value: Json, kind: type, what: str) -> Any:
    if not isinstance(value, dict):
        raise TypeError(f"{value!r} is not an object")
    hints = _hints(kind)
    fields = {f.name for f in dataclasses.fields(kind) if f.init}
    if unknown := value.keys() - fields:
        raise TypeError(f"there is no field {', '.join(sorted(unknown))}")
    return kind(**{name: _load(item, hints.get(name), what) for name, item in value.items()})


@lru_cache(maxsize=256)
def _hints(kind: type) -> Mapping[str, Any]:
    return typing.get_type_hints(kind)


def _is_model(kind: type) -> bool:
    """Detect pydantic models by their methods, so pydantic stays optional."""
    return hasattr(kind, "model_validate") and hasattr(kind, "model_dump")


def _named(kind: Any) -> str:
    return getattr(kind, "__qualname__", str(kind))
