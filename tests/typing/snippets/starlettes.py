# mypy: ignore-errors
"""Tenure's lifespan is one of FastAPI's and Starlette's, its health an application of theirs."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.routing import Mount

from tenure import Tenure
from tenure.contrib.starlette import health, lifespan

app = Tenure()
jobs = lifespan(app, work=True, queues=["mail"], concurrency=4, grace=2)


@asynccontextmanager
async def mine(program: FastAPI) -> AsyncIterator[dict[str, int]]:
    async with jobs(program):
        yield {"answer": 42}


def fits() -> None:
    FastAPI(lifespan=jobs).mount("/health", health(app))
    FastAPI(lifespan=mine)
    Starlette(lifespan=lifespan(app), routes=[Mount("/health", app=health(app))])


def wrong() -> None:
    # E: Argument 1 to "lifespan" has incompatible type "FastAPI"; expected "Tenure"  [arg-type]
    lifespan(FastAPI())
    # E: Argument 1 to "health" has incompatible type "str"; expected "Tenure"  [arg-type]
    health("postgresql://")
