"""A shop: an order and the job that charges it are one commit, and so are the charge and the
job's end. `uvicorn main:api` serves it, `tenure worker main:tasks` charges."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime

from fastapi import FastAPI, HTTPException
from pydantic import BaseModel
from sqlalchemy import BigInteger, DateTime, select, update
from sqlalchemy.ext.asyncio import async_sessionmaker, create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from tenure import AsyncJob, Tenure
from tenure.contrib.starlette import health, lifespan

URL = os.environ["DATABASE_URL"]
engine = create_async_engine(URL.replace("postgresql://", "postgresql+asyncpg://", 1))
sessions = async_sessionmaker(engine, expire_on_commit=False)
tasks = Tenure(URL)


class Base(DeclarativeBase):
    """The shop's own tables."""


class Stock(Base):
    """What is on the shelf."""

    __tablename__ = "stock"
    item: Mapped[str] = mapped_column(primary_key=True)
    cents: Mapped[int]
    count: Mapped[int]


class Order(Base):
    """One order, and the job that charges it."""

    __tablename__ = "orders"
    id: Mapped[int] = mapped_column(primary_key=True)
    item: Mapped[str]
    cents: Mapped[int]
    job_id: Mapped[int | None] = mapped_column(BigInteger)
    paid_at: Mapped[datetime | None] = mapped_column(DateTime(timezone=True))


class Receipt(BaseModel):
    """What a charge leaves behind."""

    order_id: int
    cents: int


@tasks.task(queue="payments")
async def charge(job: AsyncJob, order_id: int) -> Receipt:
    """Mark an order as paid, exactly once: the mark and the job's end are one commit, which a
    worker that has lost its lease cannot make."""
    async with sessions.begin() as session:
        order = await session.get_one(Order, order_id)
        order.paid_at = datetime.now(UTC)
        receipt = Receipt(order_id=order.id, cents=order.cents)
        await job.complete(connection=session, result=receipt)
    return receipt


jobs = lifespan(tasks)


@asynccontextmanager
async def program(api: FastAPI) -> AsyncIterator[None]:
    """Around Tenure's lifespan, the program's own: what it opens, it closes."""
    async with jobs(api):
        yield
    await engine.dispose()


api = FastAPI(lifespan=program)
api.mount("/health", health(tasks))


class Ordered(BaseModel):
    """The answer to an order."""

    order_id: int


@api.post("/orders/{item}", status_code=202)
async def order(item: str) -> Ordered:
    """Take an order and have it charged; the answer is sent after the commit."""
    async with sessions.begin() as session:
        row = Order(item=item, cents=0)
        session.add(row)
        await session.flush()
        row.job_id = (await charge.using(connection=session).aenqueue(order_id=row.id)).id
        taken = update(Stock).where(Stock.item == item, Stock.count > 0)
        price = await session.scalar(taken.values(count=Stock.count - 1).returning(Stock.cents))
        if price is None:  # Late, and no harm done: neither the order nor its job is there.
            raise HTTPException(409, "sold out")
        row.cents = price
    return Ordered(order_id=row.id)


class Charge(BaseModel):
    """How far the charge of an order has come."""

    state: str
    receipt: Receipt | None = None


@api.get("/orders/{order_id}/charge")
async def status(order_id: int) -> Charge:
    """The state of an order's charge, and the receipt once there is one."""
    async with sessions() as session:
        job_id = await session.scalar(select(Order.job_id).where(Order.id == order_id))
    handle = charge.handle(job_id or 0)
    job = await handle.aget()
    if job is None:
        raise HTTPException(404, "there is no such order, or it was charged long ago")
    return Charge(state=job.state, receipt=handle.result if job.state == "completed" else None)


async def make_tables() -> None:
    """Make the shop's tables and put something on the shelf."""
    async with engine.begin() as connection:
        await connection.run_sync(Base.metadata.create_all)
    async with sessions.begin() as session:
        await session.merge(Stock(item="book", cents=1200, count=2))
    await engine.dispose()


if __name__ == "__main__":
    asyncio.run(make_tables())
