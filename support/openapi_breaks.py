"""What a change of an OpenAPI document breaks for those who use the API as it was.

Additions do not break clients: a route, a field of an answer, an optional field of a request, a
value of an enum, a wider limit. Clients ignore unknown fields of an answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

Schema = Mapping[str, Any]
_LOWEST = ("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties")
_HIGHEST = ("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties")
_EXACT = ("pattern", "format", "const")


def breaks(old: Schema, new: Schema) -> list[str]:
    """List each break in words; an empty list if clients of the old API can use the new one."""
    return list(_Compared(old, new).routes())


class _Compared:
    """Two documents, whose references are followed as they are met."""

    def __init__(self, old: Schema, new: Schema) -> None:
        self._old = old
        self._new = new

    def routes(self) -> Iterator[str]:
        """What is gone, and what has changed in what is left."""
        for path, methods in self._old["paths"].items():
            for method, was in methods.items():
                label = f"{method.upper()} {path}"
                now = self._new["paths"].get(path, {}).get(method)
                if now is None:
                    yield f"{label} is gone"
                    continue
                if was.get("security") != now.get("security"):
                    yield f"{label} needs another scope"
                yield from self._parameters(label, was, now)
                yield from self._body(label, was, now)
                yield from self._answers(label, was, now)

    def _parameters(self, label: str, was: Schema, now: Schema) -> Iterator[str]:
        before, after = _by_name(was), _by_name(now)
        for name, parameter in after.items():
            if parameter.get("required") and not before.get(name, {}).get("required"):
                yield f"{label} {name} must be given now"
        for name, parameter in before.items():
            if name not in after:
                yield f"{label} {name} is gone"
            else:
                there = after[name]["schema"]
                yield from self._requested(f"{label} {name}", parameter["schema"], there)

    def _body(self, label: str, was: Schema, now: Schema) -> Iterator[str]:
        before, after = was.get("requestBody"), now.get("requestBody")
        if after is None:
            if before is not None:
                yield f"{label} takes no body any more"
            return
        if after.get("required") and not (before or {}).get("required"):
            yield f"{label} must have a body now"
        for kind, content in (before or {}).get("content", {}).items():
            if kind not in after["content"]:
                yield f"{label} takes no {kind} any more"
            else:
                there = after["content"][kind]["schema"]
                yield from self._requested(f"{label} body", content["schema"], there)

    def _answers(self, label: str, was: Schema, now: Schema) -> Iterator[str]:
        for status, answer in was["responses"].items():
            there = now["responses"].get(status)
            if there is None:
                yield f"{label} answers no {status} any more"
                continue
            for kind, content in answer.get("content", {}).items():
                if kind not in there.get("content", {}):
                    yield f"{label} {status} answers no {kind} any more"
                else:
                    other = there["content"][kind].get("schema", {})
                    place = f"{label} {status}"
                    yield from self._answered(place, content.get("schema", {}), other)

    def _requested(self, place: str, old: Schema, new: Schema) -> Iterator[str]:
        """What was accepted must be accepted."""
        accepted = self._alternatives(new, self._new)
        for one in self._alternatives(old, self._old):
            yield from _fewest([list(self._narrowed(place, one, each)) for each in accepted])

    def _narrowed(self, place: str, old: Schema, new: Schema) -> Iterator[str]:
        if not _types(old) <= _types(new):
            yield f"{place} must be {_or(_types(new))} now, not {_or(_types(old))}"
            return
        yield from _fewer_words(place, old, new)
        if "enum" in new and "enum" not in old:
            yield f"{place} must be one of some words now"
        for limit in _LOWEST:
            if limit in new and not new[limit] <= old.get(limit, float("-inf")):
                yield f"{place} has another {limit}: {old.get(limit)} is {new[limit]} now"
        for limit in _HIGHEST:
            if limit in new and not new[limit] >= old.get(limit, float("inf")):
                yield f"{place} has another {limit}: {old.get(limit)} is {new[limit]} now"
        for limit in _EXACT:
            if limit in new and new[limit] != old.get(limit):
                yield f"{place} has another {limit}"
        for name in sorted(set(new.get("required", ())) - set(old.get("required", ()))):
            yield f"{place}.{name} must be given now"
        yield from self._inside(place, old, new, self._requested)

    def _answered(self, place: str, old: Schema, new: Schema) -> Iterator[str]:
        """What is answered must be what was expected."""
        expected = self._alternatives(old, self._old)
        for one in self._alternatives(new, self._new):
            yield from _fewest([list(self._widened(place, each, one)) for each in expected])

    def _widened(self, place: str, old: Schema, new: Schema) -> Iterator[str]:
        if not _types(new) <= _types(old):
            yield f"{place} may be {_or(_types(new))} now, not only {_or(_types(old))}"
            return
        yield from _fewer_words(place, old, new)
        for name in sorted(set(old.get("required", ())) - set(new.get("required", ()))):
            if name in new.get("properties", {}):
                yield f"{place}.{name} is optional now"
        yield from self._inside(place, old, new, self._answered)

    def _inside(self, place: str, old: Schema, new: Schema, compare: Any) -> Iterator[str]:
        properties = new.get("properties", {})
        for name, schema in old.get("properties", {}).items():
            if name not in properties:
                yield f"{place}.{name} is gone"
            else:
                yield from compare(f"{place}.{name}", schema, properties[name])
        for name in ("items", "additionalProperties"):
            if isinstance(old.get(name), Mapping) and isinstance(new.get(name), Mapping):
                yield from compare(f"{place}[]", old[name], new[name])

    def _alternatives(self, schema: Schema, document: Schema) -> Sequence[Schema]:
        if "$ref" in schema:
            found: Any = document
            for part in schema["$ref"].removeprefix("#/").split("/"):
                found = found[part]
            return self._alternatives(found, document)
        if "anyOf" in schema:
            return [one for each in schema["anyOf"] for one in self._alternatives(each, document)]
        return [schema]


def _by_name(route: Schema) -> dict[str, Schema]:
    return {f"{one['in']} {one['name']}": one for one in route.get("parameters", ())}


def _fewest(candidates: list[list[str]]) -> list[str]:
    """The breaks against the alternative that fits best."""
    return min(candidates, key=len, default=[])


def _fewer_words(place: str, old: Schema, new: Schema) -> Iterator[str]:
    if "enum" in new:
        for word in old.get("enum", ()):
            if word not in new["enum"]:
                yield f"{place} is never {word!r} any more"


def _types(schema: Schema) -> frozenset[str]:
    """The types that a value may have; a number may be an integer."""
    answer = schema.get("type")
    if answer is None:
        every = {"null", "boolean", "integer", "number", "string", "array", "object"}
        return frozenset({_type(schema["const"])} if "const" in schema else every)
    types = {answer} if isinstance(answer, str) else set(answer)
    return frozenset(types | {"integer"} if "number" in types else types)


def _type(value: object) -> str:
    return {str: "string", bool: "boolean", int: "integer"}.get(type(value), "null")


def _or(types: frozenset[str]) -> str:
    return " or ".join(sorted(types))
