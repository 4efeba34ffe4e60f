"""A task's parameters. They check arguments on enqueue and rebuild them for the handler."""

import inspect
import types
import typing
from collections.abc import Callable, Mapping
from typing import Any

from tenure._model.ids import Json
from tenure._rules import serialization
from tenure.errors import InvalidValue, PayloadError

_EITHER = inspect.Parameter.POSITIONAL_OR_KEYWORD


class Parameters:
    """A handler's parameters, without the job's handle."""

    def __init__(self, function: Callable[..., object], *, skip: int) -> None:
        self._function = function
        whole = inspect.signature(function)
        kept = list(whole.parameters.values())[skip:]
        for parameter in kept:
            if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
                raise InvalidValue(
                    f"{function.__qualname__} takes *{parameter.name}, but arguments are stored "
                    "by name; take a list instead"
                )
        self._signature = whole.replace(parameters=kept)
        self._types: Mapping[str, Any] | None = None
        self._fitting: Mapping[str, frozenset[type]] = {}
        kinds = {parameter.kind for parameter in kept}
        self._is_simple = kinds <= {_EITHER, inspect.Parameter.KEYWORD_ONLY}
        self._places = [parameter.name for parameter in kept if parameter.kind is _EITHER]
        self._names = {parameter.name for parameter in kept}
        # Many people write `name: str = None`, which only a type checker rejects.
        self._optional = {parameter.name for parameter in kept if parameter.default is None}
        self._needed = {
            parameter.name for parameter in kept if parameter.default is inspect.Parameter.empty
        }

    def dump(self, args: tuple[object, ...], kwargs: Mapping[str, object]) -> dict[str, Json]:
        """Return the arguments by name in JSON form. Raise InvalidValue if they don't fit."""
        hints = self._annotations()
        named: dict[str, Json] = {}
        for name, value in self._bound(args, kwargs).items():
            kind = self._signature.parameters[name].kind
            if kind is inspect.Parameter.VAR_KEYWORD:
                if duplicates := named.keys() & value.keys():
                    raise InvalidValue(
                        f"{self._function.__qualname__} got {', '.join(sorted(duplicates))} twice, "
                        "but arguments are stored by name; pass it under another name"
                    )
                named |= {key: serialization.dump(item) for key, item in value.items()}
            else:
                named[name] = serialization.dump(value)
                if type(value) in self._fitting.get(name, ()):
                    continue
                if value is None and name in self._optional:
                    continue
                if refusal := serialization.argument_mismatch(value, named[name], hints.get(name)):
                    raise InvalidValue(
                        f"{self._function.__qualname__}{self._signature} cannot be called so: "
                        f"argument {name!r} is {refusal}; pass one that fits, or change the "
                        "annotation"
                    )
        return named

    def _bound(self, args: tuple[object, ...], kwargs: Mapping[str, object]) -> Mapping[str, Any]:
        """Return arguments by name. If they clearly fit, skip `inspect`, which is slow."""
        if self._is_simple and len(args) <= len(self._places):
            named = dict(zip(self._places, args, strict=False))
            fits = kwargs.keys() <= self._names and named.keys().isdisjoint(kwargs)
            named |= kwargs
            if fits and self._needed <= named.keys():
                return named
        try:
            return self._signature.bind(*args, **kwargs).arguments
        except TypeError as error:
            unknown = self._unknown(kwargs)
            why = f"got an unexpected keyword argument {unknown[0]!r}" if unknown else str(error)
            raise InvalidValue(
                f"{self._function.__qualname__}{self._signature} cannot be called so: {why}; "
                "pass its parameters by name"
            ) from None

    def _unknown(self, kwargs: Mapping[Any, Any]) -> list[str]:
        """Return misspelled names, because Python would only report the correct ones as missing."""
        if not self._is_simple:
            return []
        return [key for key in kwargs if isinstance(key, str) and key not in self._names]

    def load(self, args: Json) -> tuple[list[Any], dict[str, Any]]:
        """Return the call's arguments. Raise PayloadError if they no longer fit the handler."""
        if not isinstance(args, dict):
            raise PayloadError("the arguments must be an object of names and values")
        hints = self._annotations()
        if self._is_simple and self._needed <= args.keys() <= self._names:
            return [], {name: _loaded(name, args[name], hints.get(name)) for name in args}
        positional, named = [], {}
        rest = dict(args)
        rests: Any = None
        only = [
            name
            for name, parameter in self._signature.parameters.items()
            if parameter.kind is inspect.Parameter.POSITIONAL_ONLY
        ]

        def later(name: str) -> bool:
            default = self._signature.parameters[name].default
            following = only[only.index(name) + 1 :]
            return default is not inspect.Parameter.empty and any(n in args for n in following)

        for name, parameter in self._signature.parameters.items():
            if parameter.kind is inspect.Parameter.VAR_KEYWORD:
                rests = hints.get(name)
                continue
            if name not in rest:
                if parameter.kind is inspect.Parameter.POSITIONAL_ONLY and later(name):
                    positional.append(parameter.default)
                continue
            value = _loaded(name, rest.pop(name), hints.get(name))
            if parameter.kind is inspect.Parameter.POSITIONAL_ONLY:
                positional.append(value)
            else:
                named[name] = value
        named |= {
            name: serialization.load(value, rests, what=f"argument {name!r}")
            for name, value in rest.items()
        }
        try:
            self._signature.bind(*positional, **named)
        except TypeError as error:
            raise PayloadError(
                f"the arguments no longer fit {self._function.__qualname__}{self._signature}: "
                f"{error}; give a new parameter a default while old jobs live"
            ) from None
        return positional, named

    @property
    def returns(self) -> Any:
        return self._annotations().get("return")

    def _annotations(self) -> Mapping[str, Any]:
        """Resolve annotations on first use, because a name may be defined below the function."""
        if self._types is None:
            self._types = _hints(self._function)
            self._fitting = {
                name: serialization.accepted_types(kind) for name, kind in self._types.items()
            }
        return self._types


def _loaded(name: str, stored: Json, hint: Any) -> Any:
    """Rebuild an argument using its annotation. Raise PayloadError if it doesn't fit."""
    value = serialization.load(stored, hint, what=f"argument {name!r}")
    if refusal := serialization.mismatch(value, stored, hint):
        raise PayloadError(f"argument {name!r} is {refusal}; enqueue it again with one that fits")
    return value


def _hints(function: Callable[..., object]) -> Mapping[str, Any]:
    """Resolve annotations one by one, because some types may exist only for type checkers."""
    try:
        return typing.get_type_hints(function, include_extras=True)
    except NameError:
        pass
    hints: dict[str, Any] = {}
    for name, annotation in function.__annotations__.items():
        stub = types.SimpleNamespace(__annotations__={name: annotation})
        try:
            hints |= typing.get_type_hints(
                stub, globalns=getattr(function, "__globals__", {}), include_extras=True
            )
        except NameError:
            continue
    return hints
