"""The installation at a glance."""

from typing import TYPE_CHECKING

from fastapi import APIRouter, Request

from tenure.admin import EVERY_QUEUE, Completion, Scope
from tenure.server.access import Reader
from tenure.server.shapes import glance as shapes

if TYPE_CHECKING:
    from tenure.admin import Overview
    from tenure.server.shared import Shared

router: APIRouter = APIRouter(prefix="/v1", tags=["stats"])


@router.get("/overview")
async def overview(caller: Reader, request: Request) -> shapes.OverviewOut:
    """The numbers, what needs attention in sentences, and what was completed last. All who ask
    share an answer, which is at most 10 s old."""
    caller.must(Scope.READ, EVERY_QUEUE)
    shared: Shared[Overview] = request.app.state.overview
    found = await shared.latest()
    numbers = found.numbers
    age = None if numbers.oldest_due is None else numbers.oldest_due.total_seconds()
    named = {name: getattr(numbers, name) for name in shapes.NumbersOut.model_fields}
    return shapes.OverviewOut(
        now=found.now,
        words=found.words,
        numbers=shapes.NumbersOut.model_validate({**named, "oldest_due": age}),
        attention=[shapes.AttentionOut.model_validate(one) for one in found.attention],
        left_out=found.left_out,
        completions=[_completion(one) for one in found.completions],
    )


def _completion(one: Completion) -> shapes.CompletionOut:
    return shapes.CompletionOut(
        job_id=str(one.job_id),
        queue=one.queue,
        task=one.task,
        attempt=one.attempt,
        started_at=one.started_at,
        ended_at=one.ended_at,
        ran=one.ran.total_seconds(),
    )
