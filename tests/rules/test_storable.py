"""Results, errors and logs made fit for the store: whatever a handler says can be kept."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure._model.attempt import AttemptOutcome
from tenure._model.ids import JobId, Token, WorkerId
from tenure._model.job import State
from tenure._model.lease import Lease
from tenure._model.outcome import Settlement, SettleRequest
from tenure._rules.payload import MAX_RESULT
from tenure._rules.sanitize import (
    MAX_LOG,
    MAX_MESSAGE,
    MAX_REASON,
    MAX_TRACE,
    MAX_TYPE,
    as_unstorable,
    error,
    refused_result,
    sanitized,
    text,
)
from tenure.errors import Error

LEASE = Lease(JobId(1), Token(1), WorkerId(UUID(int=1)), timedelta(seconds=30))
DONE = Settlement(State.COMPLETED, AttemptOutcome.COMPLETED, reason="worker_done")

# Hypothesis leaves surrogates out unless it is told that they are wanted.
any_text = st.text(st.characters())
results = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | any_text | st.binary(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner)
        | st.dictionaries(any_text | st.integers() | st.tuples(any_text), inner, max_size=3)
    ),
    max_leaves=12,
)
errors = st.builds(Error, any_text, any_text, trace=any_text, signature=any_text)


def ended(settlement: Settlement, log: str | None = None) -> SettleRequest:
    return SettleRequest(LEASE, settlement, log)


def is_storable(value: str) -> bool:
    value.encode()
    return "\x00" not in value


@given(any_text, st.integers(1, 50), st.sampled_from(["head", "tail"]))
def test_any_text_becomes_text_that_postgresql_takes(value: str, limit: int, keep: str) -> None:
    safe = text(value, limit, keep=keep)
    assert is_storable(safe)
    assert len(safe) <= limit


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00")))
def test_text_that_is_fine_is_left_alone(value: str) -> None:
    assert text(value, len(value)) == value


def test_nul_and_lone_surrogates_are_written_out() -> None:
    assert text("a\x00b\ud800c\udfff😀", 100) == "a\\u0000b\\ud800c\\udfff😀"


@pytest.mark.parametrize(("keep", "kept"), [("head", "abc"), ("tail", "xyz")])
def test_text_that_is_too_long_keeps_its_head_or_its_tail(keep: str, kept: str) -> None:
    assert text("abc...xyz", 3, keep=keep) == kept


@given(results, st.none() | errors, st.none() | any_text, st.none() | any_text)
def test_whatever_a_handler_says_can_be_stored_or_is_failed_as_unstorable(
    result: object, given: Error | None, reason: str | None, log: str | None
) -> None:
    """Shows R16."""
    settlement = Settlement(
        State.COMPLETED, AttemptOutcome.COMPLETED, reason=reason, result=result, error=given
    )
    fit = sanitized(ended(settlement, log))
    kept = fit.settlement
    assert fit.lease == LEASE
    written = json.dumps(kept.result, ensure_ascii=False, allow_nan=False)
    assert len(written.encode()) <= 2 * MAX_RESULT
    assert is_storable(refused_result(fit))
    texts = [written, kept.reason, fit.log]
    if kept.error is not None:
        reported = kept.error
        texts += [reported.type, reported.message, reported.trace, reported.signature]
    assert all(is_storable(each) for each in texts if each is not None)
    if kept.reason == "unstorable" != reason:
        assert kept.state is State.FAILED


@given(errors)
def test_an_error_is_cut_to_its_limits_and_has_a_signature(value: Error) -> None:
    fit = error(value)
    assert len(fit.type) <= MAX_TYPE
    assert len(fit.message) <= MAX_MESSAGE
    assert len(fit.trace) <= MAX_TRACE
    assert 0 < len(fit.signature) <= MAX_TYPE


def test_long_texts_are_cut_where_it_hurts_least() -> None:
    answer = Error("T" * 300, "m" * 5_000, trace="start" + "t" * 20_000 + "end")
    settlement = Settlement(State.FAILED, AttemptOutcome.FAILED, reason="r" * 300, error=answer)
    fit = sanitized(ended(settlement, log="first" + "l" * 20_000 + "last"))
    reported = fit.settlement.error
    assert reported is not None
    assert (len(reported.type), len(reported.message), len(reported.trace)) == (200, 4_096, 16_384)
    assert reported.trace.endswith("end")
    assert fit.log is not None
    assert len(fit.log) == MAX_LOG
    assert fit.log.endswith("last")
    assert fit.settlement.reason == "r" * MAX_REASON


def loop() -> list[Any]:
    value: list[Any] = []
    value.append(value)
    return value


@pytest.mark.parametrize(
    "result",
    [
        {1, 2},
        object(),
        float("nan"),
        2**70,
        "x" * MAX_RESULT,
        {1: 2},
        {("a", "b"): 1},
        loop(),
    ],
    ids=["set", "object", "nan", "int", "size", "int_key", "tuple_key", "loop"],
)
def test_a_result_that_cannot_be_stored_fails_its_job_for_good(result: object) -> None:
    fit = sanitized(
        ended(Settlement(State.COMPLETED, AttemptOutcome.COMPLETED, result=result), "log")
    )
    assert (fit.settlement.state, fit.settlement.reason) == (State.FAILED, "unstorable")
    assert fit.settlement.result is None
    assert fit.settlement.error is not None
    assert fit.settlement.error.type == "Unstorable"
    assert fit.settlement.error.message
    assert fit.log == "log"


def test_escapes_reach_into_keys_and_lists() -> None:
    result = {"a\x00": ["\ud800", ("\x00",)]}
    fit = sanitized(ended(Settlement(State.COMPLETED, AttemptOutcome.COMPLETED, result=result)))
    assert fit.settlement.result == {"a\\u0000": ["\\ud800", ["\\u0000"]]}


def test_an_unstorable_ending_keeps_the_lease_and_says_why() -> None:
    fit = as_unstorable(ended(DONE, "log"), "why \x00")
    assert (fit.lease, fit.log) == (LEASE, "log")
    assert fit.settlement.error is not None
    assert fit.settlement.error.message == "why \\u0000"
    assert fit.settlement.charged


def test_evidence_of_a_refused_result_is_json_with_the_report() -> None:
    """Shows R5."""
    failed = Settlement(State.FAILED, AttemptOutcome.FAILED, error=Error("ValueError", "no"))
    assert json.loads(refused_result(ended(failed))) == {
        "state": "failed",
        "result": None,
        "error": "ValueError: no",
    }
