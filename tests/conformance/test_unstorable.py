"""What a handler produced and PostgreSQL will not take: one bad row, and its neighbours."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from support.store import SECOND
from tenure._model.attempt import AttemptOutcome
from tenure._model.job import State
from tenure._model.lease import SettleStatus
from tenure._model.outcome import Failed, Succeeded
from tenure._rules import sanitize
from tenure._store.postgres import settlement
from tenure.errors import Error
from tests.conformance.acts import a_job, claim, count, ended, get, running, settle

if TYPE_CHECKING:
    from support.store import Database
    from tenure._model.outcome import Outcome, SettleRequest

BAD = 57


async def settle_hundred(db: Database, bad: Outcome) -> None:
    """Settle a hundred jobs of which one ends in a way that cannot be stored, and look."""
    await db.run(db.store.jobs.enqueue([a_job(key=f"k{n}" if n % 2 else None) for n in range(100)]))
    claimed = await claim(db, count=100)
    batch = [ended(one, Succeeded({"n": n})) for n, one in enumerate(claimed)]
    batch[BAD] = ended(claimed[BAD], bad, log="its log")
    answers = await db.run(db.store.settlement.settle(batch))

    assert {answer.answer for answer in answers} == {SettleStatus.SETTLED}
    states = [answer.state for answer in answers]
    assert states[BAD] is State.FAILED
    assert states[:BAD] + states[BAD + 1 :] == [State.COMPLETED] * 99
    job = await get(db, claimed[BAD].job.id)
    assert (job.state, job.done_reason) == (State.FAILED, "unstorable")
    [attempt] = await db.run(db.store.jobs.attempts(job.id))
    assert (attempt.outcome, attempt.error_type) == (AttemptOutcome.FAILED, "Unstorable")
    assert attempt.error_message
    assert attempt.log == "its log"
    assert (await count(db, "job"), await count(db, "attempt")) == (0, 100)


async def test_one_that_our_checks_refuse_does_not_hold_up_the_others(db: Database) -> None:
    """Shows R16."""
    await settle_hundred(db, Succeeded({"x": object()}))


async def test_one_that_slips_through_our_checks_does_not_hold_up_the_others(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Shows R16."""

    def careless(end: SettleRequest) -> SettleRequest:
        bad = end.settlement.result == "a\0b"
        return end if bad else sanitize.sanitized(end)

    monkeypatch.setattr(settlement, "sanitized", careless)
    await settle_hundred(db, Succeeded("a\0b"))


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        ("a\0b", "a\\u0000b"),
        ({"a\0b": ["\ud800"]}, {"a\\u0000b": ["\\ud800"]}),
        ((1, 2), [1, 2]),
    ],
)
async def test_a_result_is_escaped_where_it_must_be(db: Database, value: Any, kept: Any) -> None:
    claimed = await running(db)
    assert (await settle(db, claimed, Succeeded(value))).state is State.COMPLETED

    assert (await get(db, claimed.job.id)).result == kept


@pytest.mark.parametrize(
    "value",
    ["x" * 70_000, float("nan"), 2**64, {1: 2}, b"bytes", {"a": {"b", "c"}}],
    ids=["too large", "not a number", "beyond 64 bits", "no text as name", "bytes", "a set"],
)
async def test_result_that_is_not_json_fails_the_job_with_the_reason(
    db: Database, value: Any
) -> None:
    claimed = await running(db)
    assert (await settle(db, claimed, Succeeded(value))).state is State.FAILED

    job = await get(db, claimed.job.id)
    assert job.done_reason == "unstorable"
    [attempt] = await db.run(db.store.jobs.attempts(job.id))
    assert attempt.error_message
    assert attempt.error_message.startswith("the results")


async def test_a_result_that_holds_itself_fails_the_job(db: Database) -> None:
    endless: list[Any] = []
    endless.append(endless)
    claimed = await running(db)

    assert (await settle(db, claimed, Succeeded(endless))).state is State.FAILED
    assert (await get(db, claimed.job.id)).done_reason == "unstorable"


async def test_an_oversized_error_and_log_are_cut_where_it_hurts_least(db: Database) -> None:
    """Shows R16."""
    claimed = await running(db)
    error = Error("T\0" * 500, "head" + "m" * 9_000, "t" * 50_000 + "tail\0")
    end = ended(claimed, Failed(error), log="l" * 50_000 + "last\ud800")
    [answer] = await db.run(db.store.settlement.settle([end]))
    assert answer.state is State.QUEUED

    [attempt] = await db.run(db.store.jobs.attempts(claimed.job.id))
    assert attempt.error_type is not None
    assert len(attempt.error_type) == sanitize.MAX_TYPE
    assert attempt.error_type.startswith("T\\u0000T")
    assert attempt.error_message == "head" + "m" * (sanitize.MAX_MESSAGE - 4)
    assert attempt.error_trace is not None
    assert len(attempt.error_trace) == sanitize.MAX_TRACE
    assert attempt.error_trace.endswith("tail\\u0000")
    assert attempt.log is not None
    assert len(attempt.log) == sanitize.MAX_LOG
    assert attempt.log.endswith("last\\ud800")


async def test_a_refused_result_that_needed_escaping_is_evidence_all_the_same(
    db: Database,
) -> None:
    claimed = await running(db)
    db.clock.advance(31 * SECOND)
    await db.run(db.store.leases.rescue())
    answer = await settle(db, claimed, Succeeded("a\0b"))

    assert answer.answer is SettleStatus.REFUSED
    [attempt] = await db.run(db.store.jobs.attempts(claimed.job.id))
    assert attempt.refused_result["result"] == "a\\u0000b"
