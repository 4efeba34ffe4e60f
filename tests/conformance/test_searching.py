"""Searches: what a selector means is found wherever it is, and what is searched is bounded."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest

from support.store import SECOND, A, B
from tenure._model.job import State
from tenure._model.outcome import Failed, Succeeded
from tenure._rules import paging
from tenure._rules.selector_syntax import parse
from tenure.errors import Error, InvalidValue
from tests.conformance.acts import BY, DAY, a_job, claim, ended, enqueue, settle
from tests.conformance.test_lists import made

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from support.store import Database
    from tenure._model.ids import JobId
    from tenure._model.results import JobSource, SearchPage

WIDE = 100_000


async def search(
    db: Database,
    given: str,
    *,
    count: int = 50,
    window: int = WIDE,
    places: Mapping[JobSource, JobId] | None = None,
) -> SearchPage:
    return await db.run(
        db.store.job_queries.search(parse(given), count=count, window=window, places=places)
    )


async def ids(db: Database, given: str) -> list[JobId]:
    """The ids of all that match, and that pages of two hold the same."""
    whole = [job.id for job in (await search(db, given)).jobs]
    paged: list[JobId] = []
    places = None
    while places is None or places:
        page = await search(db, given, count=2, places=places)
        paged += [job.id for job in page.jobs]
        # As people and programs pass it on.
        places = paging.search_places(paging.search_token(page.next)) if page.next else {}
    assert paged == whole
    return whole


async def test_every_state_and_every_part_of_one_is_found(db: Database) -> None:
    """Shows R36."""
    [later] = await made(db, State.QUEUED, 1, delay=DAY)
    [held] = await made(db, State.QUEUED, 1)
    await db.run(db.store.job_commands.hold([held], BY))
    [cancelled] = await made(db, State.CANCELLED, 1)
    [completed] = await made(db, State.COMPLETED, 1)
    [failed] = await made(db, State.FAILED, 1)
    [over] = await made(db, State.RUNNING, 1, lease=5 * SECOND)
    tried = await enqueue(db)
    [claimed] = await claim(db)
    await settle(db, claimed, Failed(Error("E", "no")))
    [running] = await made(db, State.RUNNING, 1)
    [due] = await made(db, State.QUEUED, 1)
    db.clock.advance(6 * SECOND)

    assert await ids(db, "state:queued") == [due, tried, held, later]
    assert await ids(db, "state:scheduled") == [later]
    assert await ids(db, "state:due") == [due]
    assert await ids(db, "state:retrying") == [tried]
    assert await ids(db, "state:held") == [held]
    assert await ids(db, "state:running") == [running, over]
    assert await ids(db, "state:expired") == [over]
    assert await ids(db, "state:completed") == [completed]
    assert await ids(db, "state:cancelled") == [cancelled]
    assert await ids(db, "state:failed") == [failed]
    assert await ids(db, "state:failed,expired,due") == [due, over, failed]
    everything = [due, running, tried, over, failed, completed, cancelled, held, later]
    assert await ids(db, "") == everything


@pytest.mark.parametrize("state", list(State))
async def test_what_every_job_has_is_compared_in_every_state(db: Database, state: State) -> None:
    db.clock.advance(DAY)
    fields: dict[str, Any] = {
        "queue": "mail",
        "task": "send",
        "key": "k:1",
        "args": {"user": {"id": 7, "name": "ada"}, "fast": True, "to": None, "n": 1.5},
        "meta": {"tags": ["vip", "eu"]},
    }
    [wanted] = await made(db, state, 1, **fields)
    db.clock.advance(DAY)
    await made(db, state, 2, args={"user": {"id": 8}, "n": 15}, meta={"tags": ["us"]})
    charged = int(state in (State.RUNNING, State.COMPLETED, State.FAILED))

    for answer in (
        "queue:mail",
        "task:other,send",
        "tag:vip,no",
        "key:k:1",
        "args.user.id:7",
        "args.user.id:6,7 args.user.name:ada",
        "args.fast:true",
        "args.to:null",
        "args.n:1.5",
        "created:>12h",
        "created:>=1d created:<=1d",
        "due:>12h",
        f"created:<{(db.clock() - timedelta(hours=1)).isoformat()}",
        f"queue:mail attempt:{charged}",
        f"queue:mail attempt:>={charged} attempt:<{charged + 1}",
    ):
        assert await ids(db, f"state:{state} {answer}") == [wanted], answer
        assert await ids(db, answer) == [wanted], answer
    for answer in (
        "queue:ma",
        "tag:vi",
        "args.user:7",
        "args.user.id:77",
        "created:>1d",
        "attempt:>1",
    ):
        assert await ids(db, f"state:{state} {answer}") == [], answer


async def test_errors_are_those_of_dead_letters_and_of_the_last_attempt(db: Database) -> None:
    dead = await enqueue(db)
    [claimed] = await claim(db)
    await settle(db, claimed, Failed(Error("A", "x", signature="A: x"), retryable=False))
    tried = await enqueue(db)
    for name in ("A", "B"):
        [claimed] = await claim(db)
        await settle(db, claimed, Failed(Error(name, "y", signature=f"{name}: y")))
        db.clock.advance(DAY / 24)
    await made(db, State.COMPLETED, 1, queue="other")
    await enqueue(db)

    assert await ids(db, "error:A") == [dead]
    assert await ids(db, "error:B") == [tried]
    assert await ids(db, 'error:"A: x","B: y"') == [tried, dead]
    assert await ids(db, "error:C") == []


async def test_ends_and_workers_are_those_of_jobs_that_have_them(db: Database) -> None:
    await made(db, State.QUEUED, 1, queue="other")
    [old] = await made(db, State.COMPLETED, 1)
    db.clock.advance(DAY)
    [young] = await made(db, State.FAILED, 1)
    running = await enqueue(db)
    await claim(db, worker=B)

    assert await ids(db, "ended:<1h") == [young]
    assert await ids(db, "ended:>=1h") == [old]
    assert await ids(db, f"worker:{A}") == [young, old]
    assert await ids(db, f"worker:{B},{UUID(int=99)}") == [running]
    assert await ids(db, "worker:nobody") == []


async def test_ids_are_found_wherever_they_are(db: Database) -> None:
    [completed] = await made(db, State.COMPLETED, 1)
    [queued] = await made(db, State.QUEUED, 1)
    [failed] = await made(db, State.FAILED, 1, queue="b")

    text = f"id:{failed},{completed},4711,{queued}"
    assert await ids(db, text) == [failed, queued, completed]
    assert (await search(db, text)).searched == 3


async def test_search_ends_at_its_bound_and_continues_on_request(db: Database) -> None:
    """However many do not match, a page reads a bounded number of rows."""
    old = [
        *await made(db, State.COMPLETED, 1, task="wanted"),
        *await made(db, State.FAILED, 1, task="wanted"),
        *await made(db, State.QUEUED, 1, task="wanted", queue="later"),
    ]
    for state in (State.COMPLETED, State.FAILED, State.CANCELLED):
        await made(db, state, 5)
    await made(db, State.QUEUED, 2)

    page = await search(db, "task:wanted", window=12)
    assert ([job.id for job in page.jobs], page.bounded, page.searched) == ([old[2]], True, 12)
    rest, looked = [], 0
    while page.next:
        page = await search(db, "task:wanted", window=12, places=page.next)
        rest += [job.id for job in page.jobs]
        looked += page.searched
    assert (sorted(rest), page.bounded, looked) == (old[:2], False, 8)

    whole = await search(db, "task:wanted")
    assert ([job.id for job in whole.jobs], whole.bounded) == (old[::-1], False)
    assert (whole.searched, whole.next) == (20, {})


async def test_running_jobs_are_found_behind_any_number_of_queued_ones(db: Database) -> None:
    [running] = await made(db, State.RUNNING, 1)
    await made(db, State.QUEUED, 20)
    page = await search(db, "state:running", window=2)
    assert ([job.id for job in page.jobs], page.bounded) == ([running], False)


async def test_a_full_page_does_not_look_further_than_it_must(db: Database) -> None:
    await made(db, State.QUEUED, 30)
    page = await search(db, "", count=10)
    assert (len(page.jobs), page.searched, page.bounded) == (10, 10, False)


async def test_page_token_of_another_search_is_harmless(db: Database) -> None:
    [job_id] = await made(db, State.QUEUED, 1)
    for text in ("state:queued", f"id:{job_id}"):
        page = await search(db, text, places=paging.search_places("i9-f9-a9"))
        assert [job.id for job in page.jobs] == ([] if text == "state:queued" else [job_id])


async def test_the_archive_is_searched_across_days_by_id(db: Database) -> None:
    """A job may be enqueued before another and end on a later day."""
    [long] = await made(db, State.QUEUED, 1, queue="long")
    [first] = await made(db, State.COMPLETED, 1)
    db.clock.advance(2 * DAY)
    [claimed] = await claim(db, queues=["long"])
    await db.run(db.store.settlement.settle([ended(claimed, Succeeded())]))
    assert await ids(db, "state:completed") == [first, long]


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (
            "state:completed error:E",
            "a completed job has no error; name another state:, or omit error:",
        ),
        ("state:due ended:<1h", "a queued job has not ended"),
        ("state:queued worker:w", "a queued job has no worker"),
        ("args.a:1 args.a.b:2", "is inside another"),
        ("args.a:1,2,3,4,5,6,7,8,9 args.b:1,2,3,4,5,6,7,8,9", "got 324"),
    ],
)
async def test_what_nothing_can_match_is_refused(db: Database, given: str, why: str) -> None:
    with pytest.raises(InvalidValue, match=why):
        await search(db, given)


async def test_the_statements_take_any_storable_text(db: Database) -> None:
    wanted: Sequence[str] = ["a,b", 'say "hi"', "back\\slash", "{,}", "NULL", "ü\n"]
    made_of = [a_job(task=f"t{n}", key=text, args={"x": text}) for n, text in enumerate(wanted)]
    await db.run(db.store.jobs.enqueue(made_of))
    for text in wanted:
        escaped = text.replace("\\", "\\\\").replace('"', '\\"')
        for field in ("key", "args.x"):
            assert len(await ids(db, f'{field}:"{escaped}"')) == 1
