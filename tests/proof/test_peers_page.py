"""The page about other queues: tables say what a run found, outcomes what the stores said."""

from __future__ import annotations

from typing import Any

import pytest

from proof.peers import field, page
from proof.peers.stopping import outcome
from support.markdown import fill

KILLED = {
    "version": "1.2.3",
    "in_hand": 10,
    "done": 17,
    "stuck": 2,
    "given_up": 0,
    "lost": 1,
    "words": ["doing"],
    "ended_twice": 0,
    "seconds": None,
    "watched": 150.0,
}
STOPPED = {
    "taken_after": 31.5,
    "outcome": "accepted",
    "held": "doing",
    "seen": [["doing", None], ["succeeded", "first"]],
    "last": ["succeeded", "second"],
    "watched": 150.0,
}


def found(**row: Any) -> dict[str, Any]:
    one = {"name": "A queue", "settings": "defaults", "kill": KILLED, "stop": STOPPED} | row
    return {
        "at": "2026-01-02T03:04:05",
        "python": "3.11.7",
        "postgresql": "15.20 (Debian)",
        "watch": 150.0,
        "rows": [one],
    }


def filled(name: str, **row: Any) -> str:
    """The last line of the table of this name."""
    return page.TABLES[name](found(**row)).splitlines()[-1]


def test_the_page_says_on_what_it_was_run() -> None:
    assert filled("run").startswith("Run on 2026-01-02 with PostgreSQL 15.20")


def test_kill_is_reported_with_its_counts() -> None:
    assert filled("kill") == "| A queue | 10 | 17 | 2 | 0 | 1 | 0 | – | doing |"
    done = KILLED | {"done": 20, "stuck": 0, "lost": 0, "words": [], "seconds": 31.0}
    assert filled("kill", kill=done) == "| A queue | 10 | 20 | 0 | 0 | 0 | 0 | 31 s | – |"


def test_late_completion_is_reported_with_the_kept_result() -> None:
    records = "doing, then succeeded by first | succeeded by second |"
    assert filled("stop") == f"| A queue | accepted | 31.5 s | {records}"


def test_job_without_a_second_holder_has_no_late_completion() -> None:
    alone = {"taken_after": None, "held": "doing", "watched": 150.0}
    records = "| A queue | not applicable | not within 150 s | doing | – |"
    assert filled("stop", stop=alone) == records


def test_a_queue_that_could_not_be_tried_is_not_counted_as_anything() -> None:
    assert "not tried" in filled("kill", kill={"not_tried": "no network"})
    assert "not tried" in filled("stop", stop={"not_tried": "no network"})


@pytest.mark.parametrize(
    ("held", "words", "expected"),
    [
        ("doing", ["doing", "succeeded"], "accepted"),
        ("fetched", ["fetched", "gone"], "accepted"),
        ("running", ["running"], "refused"),
        ("active", ["active", "queued"], "changed to queued"),
    ],
)
def test_outcome_is_the_answer_of_the_store(held: str, words: list[str], expected: str) -> None:
    assert outcome(held, words) == expected


def test_the_page_has_a_place_for_every_table_and_every_way_a_key_of_its_own() -> None:
    parts = {name: made(found()) for name, made in page.TABLES.items()}
    assert fill(page.PAGE.read_text(), parts).count("A queue") == 3
    assert len({way.key for way in field.WAYS}) == len(field.WAYS)
