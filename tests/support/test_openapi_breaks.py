"""Every kind of break is refused; what is only more is not."""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Any

import pytest

from support.openapi_breaks import breaks

if TYPE_CHECKING:
    from collections.abc import Callable

Document = dict[str, Any]
IN: Document = {
    "type": "object",
    "additionalProperties": False,
    "required": ["name"],
    "properties": {
        "name": {"type": "string", "minLength": 1, "maxLength": 200},
        "kind": {"enum": ["retry", "cancel"], "type": "string"},
        "rate": {"anyOf": [{"type": "integer", "minimum": 1, "maximum": 9}, {"type": "null"}]},
        "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 20},
    },
}
OUT: Document = {
    "type": "object",
    "required": ["id", "state"],
    "properties": {
        "id": {"type": "string"},
        "state": {"$ref": "#/components/schemas/State"},
        "items": {"type": "array", "items": {"type": "integer"}},
    },
}
PROBLEM: Document = {
    "type": "object",
    "required": ["code"],
    "properties": {"code": {"type": "string", "enum": ["invalid", "not-found"]}},
}


def content(kind: str, name: str) -> Document:
    return {"content": {kind: {"schema": {"$ref": f"#/components/schemas/{name}"}}}}


OLD: Document = {
    "paths": {
        "/jobs": {
            "post": {
                "security": [{"HTTPBearer": ["enqueue"]}],
                "parameters": [
                    {"name": "count", "in": "query", "schema": {"type": "number", "maximum": 200}}
                ],
                "requestBody": content("application/json", "In"),
                "responses": {
                    "201": content("application/json", "Out"),
                    "default": content("application/problem+json", "Problem"),
                },
            },
            "get": {"responses": {"200": {}}},
        },
        "/live": {"get": {"responses": {"200": {}}}},
    },
    "components": {
        "schemas": {
            "In": IN,
            "Out": OUT,
            "State": {"type": "string", "enum": ["queued", "running"]},
            "Problem": PROBLEM,
        }
    },
}


def at(document: Document, path: str) -> Any:
    """What a path of keys leads to, `/` between them; `|` stands for a slash in a key."""
    found: Any = document
    for key in path.split("/"):
        found = found[int(key) if isinstance(found, list) else key.replace("|", "/")]
    return found


ROUTE = "paths/|jobs/post"
FIELDS = "components/schemas/In/properties"
ANSWER = "components/schemas/Out"


def put(path: str, value: Any) -> Callable[[Document], None]:
    where, _, key = path.rpartition("/")

    def change(new: Document) -> None:
        at(new, where)[key.replace("|", "/")] = value

    change.__name__ = f"{path}={value}"[:60]
    return change


def drop(path: str) -> Callable[[Document], None]:
    where, _, key = path.rpartition("/")

    def change(new: Document) -> None:
        del at(new, where)[key.replace("|", "/")]

    change.__name__ = f"without {path}"[:60]
    return change


BREAKS = {
    "GET /live is gone": drop("paths/|live"),
    "GET /jobs is gone": drop("paths/|jobs/get"),
    "POST /jobs needs another scope": put(f"{ROUTE}/security", [{"HTTPBearer": ["admin"]}]),
    "POST /jobs query count is gone": put(f"{ROUTE}/parameters", []),
    "POST /jobs query count must be given now": put(f"{ROUTE}/parameters/0/required", True),
    "POST /jobs query count has another maximum: 200 is 100 now": put(
        f"{ROUTE}/parameters/0/schema/maximum", 100
    ),
    "POST /jobs query count must be integer now, not integer or number": put(
        f"{ROUTE}/parameters/0/schema/type", "integer"
    ),
    "POST /jobs must have a body now": put(f"{ROUTE}/requestBody/required", True),
    "POST /jobs takes no body any more": drop(f"{ROUTE}/requestBody"),
    "POST /jobs body.tags must be given now": put(
        "components/schemas/In/required", ["name", "tags"]
    ),
    "POST /jobs body.tags is gone": drop(f"{FIELDS}/tags"),
    "POST /jobs body.kind is never 'cancel' any more": put(f"{FIELDS}/kind/enum", ["retry"]),
    "POST /jobs body.name must be one of some words now": put(f"{FIELDS}/name/enum", ["a"]),
    "POST /jobs body.name has another minLength: 1 is 2 now": put(f"{FIELDS}/name/minLength", 2),
    "POST /jobs body.name has another pattern": put(f"{FIELDS}/name/pattern", "[a-z]+"),
    "POST /jobs body.rate must be integer now, not null": put(
        f"{FIELDS}/rate/anyOf", [{"type": "integer", "minimum": 1, "maximum": 9}]
    ),
    "POST /jobs body.tags[] must be integer now, not string": put(
        f"{FIELDS}/tags/items/type", "integer"
    ),
    "POST /jobs answers no 201 any more": drop(f"{ROUTE}/responses/201"),
    "POST /jobs 201 answers no application/json any more": put(
        f"{ROUTE}/responses/201/content", {}
    ),
    "POST /jobs 201.id is gone": drop(f"{ANSWER}/properties/id"),
    "POST /jobs 201.id is optional now": put(f"{ANSWER}/required", ["state"]),
    "POST /jobs 201.id may be null now, not only string": put(
        f"{ANSWER}/properties/id", {"anyOf": [{"type": "string"}, {"type": "null"}]}
    ),
    "POST /jobs 201.items[] may be string now, not only integer": put(
        f"{ANSWER}/properties/items/items/type", "string"
    ),
    "POST /jobs default.code is never 'not-found' any more": put(
        "components/schemas/Problem/properties/code/enum", ["invalid"]
    ),
}
ADDITIONS = [
    put("paths/|new", {"get": {"responses": {"200": {}}}}),
    put("paths/|jobs/delete", {"responses": {"200": {}}}),
    put(
        f"{ROUTE}/parameters",
        [
            *OLD["paths"]["/jobs"]["post"]["parameters"],
            {"name": "more", "in": "query", "schema": {"type": "string"}},
        ],
    ),
    put(f"{ROUTE}/parameters/0/schema/maximum", 1000),
    put(f"{ROUTE}/responses/200", {}),
    put(f"{FIELDS}/more", {"type": "string"}),
    put(f"{FIELDS}/kind/enum", ["retry", "cancel", "move"]),
    put(f"{FIELDS}/name/maxLength", 400),
    drop(f"{FIELDS}/name/minLength"),
    put("components/schemas/In/required", []),
    put(f"{FIELDS}/name", {"anyOf": [{"type": "string"}, {"type": "null"}]}),
    put(f"{ANSWER}/properties/more", {"type": "string"}),
    put(f"{ANSWER}/required", ["id", "state", "items"]),
    put("components/schemas/State/enum", ["queued", "running", "held"]),
    put("components/schemas/Problem/properties/code/enum", ["invalid", "not-found", "new"]),
]


def changed(change: Callable[[Document], None]) -> Document:
    new = deepcopy(OLD)
    change(new)
    return new


def test_what_is_the_same_breaks_nothing() -> None:
    assert breaks(OLD, deepcopy(OLD)) == []


@pytest.mark.parametrize(("reported", "change"), BREAKS.items(), ids=list(BREAKS))
def test_break_is_reported(reported: str, change: Callable[[Document], None]) -> None:
    assert breaks(OLD, changed(change)) == [reported]


@pytest.mark.parametrize("change", ADDITIONS, ids=lambda change: change.__name__)
def test_what_is_only_more_breaks_nothing(change: Callable[[Document], None]) -> None:
    assert breaks(OLD, changed(change)) == []
