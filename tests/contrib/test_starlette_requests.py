"""Jobs that are enqueued in a request's own transaction: there exactly if it commits, and the
answer is sent after that.

Without `from __future__ import annotations`: FastAPI reads the annotations of routes that are
made in a function.
"""

from collections.abc import AsyncIterator, Iterator
from typing import Annotated

import psycopg
import pytest
from fastapi import Depends, FastAPI, HTTPException
from sqlalchemy import create_engine, text
from sqlalchemy.ext.asyncio import AsyncSession, async_sessionmaker, create_async_engine
from sqlalchemy.orm import Session, sessionmaker
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from tenure import Tenure
from tests.contrib.starlettes import asking

NEW = text("INSERT INTO orders (parent) VALUES (:parent)")
ROUTES = ["async", "dependency", "sync", "starlette"]


def counts(url: str) -> tuple[int, int]:
    """How many orders and how many jobs there are."""
    with psycopg.connect(url) as connection:
        found = connection.execute(
            "SELECT (SELECT count(*) FROM orders), (SELECT count(*) FROM tenure.job)"
        ).fetchone()
    assert found is not None
    return found[0], found[1]


@pytest.fixture
async def program(app: Tenure, url: str) -> AsyncIterator[Starlette]:
    """Routes that take an order, each in its own way. A parent that is not there is noticed at
    the commit; one of 13 by the route, after the enqueue."""
    with psycopg.connect(url) as connection:
        connection.execute(
            "CREATE TABLE orders (id serial PRIMARY KEY, "
            "parent int REFERENCES orders DEFERRABLE INITIALLY DEFERRED)"
        )
    async_engine = create_async_engine(url.replace("postgresql:", "postgresql+asyncpg:", 1))
    engine = create_engine(url.replace("postgresql:", "postgresql+psycopg:", 1))
    async_sessions = async_sessionmaker(async_engine)
    sessions = sessionmaker(engine)

    @app.task
    def charge(parent: int | None) -> None: ...

    def check(parent: int | None) -> None:
        if parent == 13:
            raise HTTPException(409, "not this one")

    async def in_transaction() -> AsyncIterator[AsyncSession]:
        async with async_sessions.begin() as session:
            yield session

    def in_sync_transaction() -> Iterator[Session]:
        with sessions.begin() as session:
            yield session

    program = FastAPI()

    @program.post("/async")
    async def _async(parent: int | None = None) -> int:
        async with async_sessions.begin() as session:
            await session.execute(NEW, {"parent": parent})
            handle = await charge.using(connection=session).aenqueue(parent)
            check(parent)
        return handle.id

    @program.post("/dependency")
    async def _dependency(
        session: Annotated[AsyncSession, Depends(in_transaction, scope="function")],
        parent: int | None = None,
    ) -> int:
        await session.execute(NEW, {"parent": parent})
        handle = await charge.using(connection=session).aenqueue(parent)
        check(parent)
        return handle.id

    @program.post("/sync")
    def _sync(
        session: Annotated[Session, Depends(in_sync_transaction, scope="function")],
        parent: int | None = None,
    ) -> int:
        session.execute(NEW, {"parent": parent})
        handle = charge.using(connection=session).enqueue(parent)
        check(parent)
        return handle.id

    async def _starlette(request: Request) -> JSONResponse:
        given = request.query_params.get("parent")
        return JSONResponse(await _async(None if given is None else int(given)))

    program.router.routes.append(Route("/starlette", _starlette, methods=["POST"]))
    yield program
    await async_engine.dispose()
    engine.dispose()


@pytest.mark.parametrize("route", ROUTES)
async def test_the_job_is_there_when_the_request_is_answered(
    program: Starlette, app: Tenure, url: str, route: str
) -> None:
    """Shows R20."""
    async with asking(program) as client:
        answer = await client.post(f"/{route}")
    assert answer.status_code == 200
    assert counts(url) == (1, 1)
    assert app.admin.jobs.get(answer.json()) is not None


@pytest.mark.parametrize("route", ROUTES)
async def test_a_request_that_fails_after_the_enqueue_leaves_nothing(
    program: Starlette, url: str, route: str
) -> None:
    """Shows R20."""
    async with asking(program) as client:
        assert (await client.post(f"/{route}?parent=13")).status_code == 409
    assert counts(url) == (0, 0)


@pytest.mark.parametrize("route", ROUTES)
async def test_a_commit_that_fails_is_not_answered_as_if_it_had_not(
    program: Starlette, url: str, route: str
) -> None:
    async with asking(program) as client:
        assert (await client.post(f"/{route}?parent=99")).status_code == 500
    assert counts(url) == (0, 0)
