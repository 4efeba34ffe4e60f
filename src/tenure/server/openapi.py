"""The API as an OpenAPI document: what FastAPI finds out, and what all routes share, once."""

from typing import Any

from fastapi import FastAPI

from tenure.server.problems import KINDS
from tenure.server.schemas.base import ProblemOut

_PROBLEM: dict[str, Any] = {
    "description": "A problem",
    "content": {
        "application/problem+json": {"schema": {"$ref": "#/components/schemas/ProblemOut"}}
    },
}
# What may be answered beside what a route says itself.
RESPONSES: dict[int | str, dict[str, Any]] = {422: _PROBLEM, "default": _PROBLEM}


def install(api: FastAPI) -> None:
    """Let the document have the problem, and its codes, in one place."""
    found = api.openapi

    def openapi() -> dict[str, Any]:
        document = found()
        problem = ProblemOut.model_json_schema()
        problem["properties"]["code"]["enum"] = list(KINDS)
        document["components"]["schemas"]["ProblemOut"] = problem
        return document

    api.openapi = openapi  # type: ignore[method-assign] # As FastAPI would have it.
