"""Selectors on the command line: lists, operations by `--filter`, and what is not understood."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from support.race_helpers import dead_letter, enqueued
from tenure.cli.errors import Exit

if TYPE_CHECKING:
    from support.store import Database
    from tests.cli.conftest import Command, Ended


def ids(ended: Ended) -> list[int]:
    assert ended.code == Exit.DONE, ended.err
    return [job["id"] for job in ended.json["jobs"]]


async def test_a_list_is_of_what_a_selector_means_and_says_what_was_searched(
    db: Database, tenure: Command
) -> None:
    """Shows R36."""
    dead = await dead_letter(db)
    [mail] = await enqueued(db, queue="mail", args={"to": {"id": 7}}, meta={"tags": ["vip"]})
    [other] = await enqueued(db, queue="other")

    assert ids(tenure("job", "list", "--json")) == [other, mail]
    assert ids(tenure("job", "list", "state:queued,failed", "--json")) == [other, mail, dead]
    assert ids(tenure("job", "list", "tag:vip args.to.id:7", "-q", "mail", "--json")) == [mail]
    assert ids(tenure("failed", "list", "error:ValueError", "--json")) == [dead]
    printed = tenure("job", "list", "state:queued").err
    assert re.fullmatch(r"searched 2 in [\d,]+ ms\n2 shown; no more\n", printed)


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["job", "list", "stat:failed"], "there is no field 'stat'"),
        (["job", "list", "queue:a", "-q", "b"], "queue: is given twice"),
        (["failed", "list", "state:due"], "names another state"),
        (["failed", "list", "error:E", "--signature", "E"], "a selector and a --signature"),
        (["failed", "retry", "state:due", "--yes"], "must be failed, got queued"),
        (["job", "cancel"], "neither an id nor a --filter"),
        (["job", "cancel", "--filter", " "], "it would match every job"),
    ],
)
def test_what_is_not_understood_is_a_mistake_of_usage(
    tenure: Command, words: list[str], why: str
) -> None:
    ended = tenure(*words)
    assert (ended.code, ended.out) == (Exit.USAGE, "")
    assert why in ended.error[1]


async def test_all_that_a_selector_means_is_steered_as_an_operation(
    db: Database, tenure: Command
) -> None:
    """Shows R15."""
    await dead_letter(db)
    await enqueued(db, 3, queue="mail", meta={"tags": ["vip"]})
    await enqueued(db, queue="mail")

    for words, total in {
        ("job", "retry", "--filter", "task:work"): 1,
        ("job", "cancel", "--filter", "queue:mail tag:vip"): 3,
        ("job", "move", "--filter", "state:queued queue:mail", "-q", "bulk"): 4,
        ("failed", "retry", "error:ValueError"): 1,
    }.items():
        rehearsed = tenure(*words, "--dry-run", "--json")
        assert (rehearsed.code, rehearsed.json["total"]) == (Exit.DONE, total), rehearsed.err
    refused = tenure("job", "cancel", "--filter", "queue:mail tag:vip")
    assert refused.code == Exit.USAGE
    assert "cancel 3 jobs, at most 500 per second?" in refused.error[1]
