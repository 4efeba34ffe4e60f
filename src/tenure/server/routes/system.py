"""Routes for the system, the doctor and leases."""

import asyncio
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Annotated
from urllib.parse import urlsplit
from uuid import UUID

from fastapi import APIRouter, Query, Request

from tenure.server.auth import Reader
from tenure.server.dependencies import AdminDep, PageSize
from tenure.server.problems import ProblemError
from tenure.server.schemas import system as shapes
from tenure.server.schemas.base import Name
from tenure.types import EVERY_QUEUE, LeaseRow, Scope

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tenure.app import Tenure
    from tenure.server.cache import SingleFlightCache
    from tenure.types import Finding

router: APIRouter = APIRouter(prefix="/v1")
_EXAMINED_WITHIN = 10.0


@router.get("/leases", tags=["leases"])
async def leases(
    caller: Reader,
    admin: AdminDep,
    worker: Annotated[UUID | None, Query()] = None,
    queue: Annotated[Name | None, Query()] = None,
    page_size: PageSize = 100,
) -> shapes.LeaseListOut:
    """List running jobs' leases, soonest to expire first. Searches the 10,000 that expire first."""
    if queue is not None:
        caller.must(Scope.READ, queue)
    rows = await admin.jobs.aleases(
        worker=worker, queue=queue, count=page_size, patterns=caller.patterns
    )
    seen = [_lease(row) for row in rows if caller.may(Scope.READ, row.queue)]
    return shapes.LeaseListOut(leases=seen)


def _lease(row: LeaseRow) -> shapes.LeaseOut:
    return shapes.LeaseOut.of(row, worker_id=row.worker)


@router.get("/system", tags=["system"])
async def system(caller: Reader, admin: AdminDep, request: Request) -> shapes.SystemOut:
    """Get the release, schema version, durability, table sizes and retention. Needs `read` for all
    queues."""
    caller.must(Scope.READ, EVERY_QUEUE)
    app: Tenure = request.app.state.app
    info, storage, schema = await asyncio.gather(
        admin.asystem(), admin.astorage(), admin.schema.astatus()
    )
    return shapes.SystemOut(
        release=_release(),
        database=_place(app.engine.url),
        database_schema=app.engine.schema,
        redis=app.engine.notifier is not None,
        server=info.version,
        role=info.role,
        schema_version=shapes.SchemaOut.of(schema),
        durability=shapes.DurabilityOut.of(info.durability),
        tables=[shapes.TableOut.of(table) for table in storage.tables],
        holders=[shapes.HolderOut.of(one) for one in info.holders],
        histories=[shapes.HistoryOut.of(one, keep_days=one.keep.days) for one in info.histories],
    )


def _release() -> str:
    try:
        return version("tenure")
    except PackageNotFoundError:
        return "unknown"


def _place(url: str) -> str:
    """Return a database's address without the user and password."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


@router.get("/doctor", tags=["system"])
async def doctor(caller: Reader, request: Request) -> shapes.FindingListOut:
    """Get the `tenure doctor` findings, at most 15 s old. Needs `read` for all queues."""
    caller.must(Scope.READ, EVERY_QUEUE)
    shared: SingleFlightCache[Sequence[Finding]] = request.app.state.findings
    try:
        async with asyncio.timeout(_EXAMINED_WITHIN):
            findings = await shared.get()
    except TimeoutError:
        raise ProblemError(
            "too-slow", "the checks took too long. Try again later, or run: tenure doctor"
        ) from None
    return shapes.FindingListOut(findings=[shapes.FindingOut.of(one) for one in findings])
