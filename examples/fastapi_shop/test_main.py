"""The shop's tests: no worker and no server, but a real database, which Tenure's pytest plugin
makes and empties. `python -m pytest` runs them."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager

import httpx
import pytest
from sqlalchemy import NullPool, make_url
from sqlalchemy.ext.asyncio import create_async_engine

from tenure import Tenure
from tenure.testing import aassert_enqueued, adrain

# Never used: each test has a database of its own.
os.environ.setdefault("DATABASE_URL", "postgresql://nobody@localhost/nothing")
import main

Run = Callable[[Callable[[httpx.AsyncClient], Coroutine[None, None, None]]], None]


@pytest.fixture
def run(tenure_app: Tenure, tenure_database: str) -> Run:
    """Runs a story with a client of the shop, whose tables are new and whose shelf is filled."""
    url = make_url(tenure_database).set(drivername="postgresql+asyncpg")

    @asynccontextmanager
    async def opened() -> AsyncIterator[httpx.AsyncClient]:
        engine = create_async_engine(url, poolclass=NullPool)
        main.sessions.configure(bind=engine)
        async with engine.begin() as connection:
            await connection.run_sync(main.Base.metadata.drop_all)
            await connection.run_sync(main.Base.metadata.create_all)
        async with main.sessions.begin() as session:
            session.add(main.Stock(item="book", cents=1200, count=1))
        transport = httpx.ASGITransport(main.api)
        async with httpx.AsyncClient(transport=transport, base_url="http://shop") as client:
            yield client
        await tenure_app.aclose()

    def run(story: Callable[[httpx.AsyncClient], Coroutine[None, None, None]]) -> None:
        async def notified() -> None:
            async with opened() as client:
                await story(client)

        asyncio.run(notified())

    return run


def test_an_order_is_charged(run: Run) -> None:
    async def story(client: httpx.AsyncClient) -> None:
        order = (await client.post("/orders/book")).json()["order_id"]
        await aassert_enqueued(main.charge, count=1, args={"order_id": order}, queue="payments")

        await adrain(main.tasks)

        charge = (await client.get(f"/orders/{order}/charge")).json()
        assert charge == {"state": "completed", "receipt": {"order_id": order, "cents": 1200}}

    run(story)


def test_what_is_sold_out_leaves_no_job(run: Run) -> None:
    async def story(client: httpx.AsyncClient) -> None:
        await client.post("/orders/book")
        await adrain(main.tasks)

        assert (await client.post("/orders/book")).status_code == 409
        await aassert_enqueued(main.charge, count=1)  # that of the first

    run(story)
