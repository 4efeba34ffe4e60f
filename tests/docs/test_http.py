"""The HTTP API as it is documented, and as it is."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from support.http_page import document as served_document
from support.http_page import page
from support.openapi_breaks import breaks
from tenure import _actions
from tenure.server.problems import KINDS
from tenure.types import Scope

REFERENCE = Path(__file__).parents[2] / "docs/reference"
BASELINE = Path(__file__).parent / "openapi.baseline.json"
PAGE = (REFERENCE / "http.md").read_text()


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    """The OpenAPI document that a server serves. It opens no connection."""
    return served_document()


def test_the_document_in_the_reference_is_the_one_that_is_served(document: dict[str, Any]) -> None:
    """After a change, run `just docs-http` and check what it changes for users of the API."""
    assert json.loads((REFERENCE / "openapi.json").read_text()) == document
    assert document["openapi"].startswith("3.1")


def test_http_page_is_what_the_script_writes(document: dict[str, Any]) -> None:
    """After a change, run `just docs-http`."""
    assert page(document) == PAGE


def test_nothing_breaks_what_the_last_release_served(document: dict[str, Any]) -> None:
    """The baseline is the document of the last release; a release renews it."""
    assert breaks(json.loads(BASELINE.read_text()), document) == []


def test_every_route_is_documented_and_none_that_is_not_there(document: dict[str, Any]) -> None:
    documented = re.findall(r"^\| \[`([A-Z]+ \S+)`\]\(#", PAGE, re.MULTILINE)
    served = [f"{m.upper()} {path}" for path, methods in document["paths"].items() for m in methods]
    assert sorted(documented) == sorted(served)


def test_every_problem_is_documented_with_its_status() -> None:
    rows = re.findall(r"^\| `([a-z-]+)` \| (\d{3}) \|", PAGE, re.MULTILINE)
    assert rows == [(code, str(kind.status)) for code, kind in KINDS.items()]


def test_every_scope_is_documented() -> None:
    """In one place only: the page of routes links to it."""
    table = (REFERENCE / "access.md").read_text().split("## Scopes")[1].split("\n## ")[0]
    assert re.findall(r"^\| `([a-z:]+)` \|", table, re.MULTILINE)[: len(Scope)] == list(Scope)
    assert "(access.md#scopes)" in PAGE


def test_every_route_says_what_it_does_and_needs_a_token_but_one(document: dict[str, Any]) -> None:
    for path, methods in document["paths"].items():
        for method, route in methods.items():
            assert route["description"], (method, path)
            assert bool(route.get("security")) == (path != "/live"), (method, path)


def test_the_scopes_of_the_routes_are_those_that_are_documented(document: dict[str, Any]) -> None:
    rows = re.findall(r"^\| \[`([A-Z]+) (\S+)`\]\S+ \| `?([a-z]+)", PAGE, re.MULTILINE)
    assert len(rows) > 50
    for method, path, scope in rows:
        needed = document["paths"][path][method.lower()].get("security", [{"HTTPBearer": ["none"]}])
        assert needed == [{"HTTPBearer": [] if scope == "any" else [scope]}], (method, path)


ACTIONS = [value for value in vars(_actions).values() if isinstance(value, _actions.Action)]


@pytest.mark.parametrize("action", ACTIONS, ids=lambda action: action.audit)
def test_every_action_has_a_route_that_reads_its_description_and_scope(
    document: dict[str, Any], action: _actions.Action
) -> None:
    """Dead letters are discarded by operations alone."""
    routes = [
        route
        for methods in document["paths"].values()
        for route in methods.values()
        if route["description"] == action.summary
    ]
    assert len(routes) == (action is not _actions.DISCARD)
    assert [list(one["security"][0].values()) for one in routes] == [[[action.scope]]] * len(routes)
