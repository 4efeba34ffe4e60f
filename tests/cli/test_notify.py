"""`tenure notify`: rules are added, listed, tested and removed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tenure.cli.errors import Exit

if TYPE_CHECKING:
    from tests.cli.conftest import Command

TO = ("--to", "https://hooks.example.com/x", "--secret", "ops")


def test_a_rule_is_added_listed_tested_and_removed(tenure: Command) -> None:
    added = tenure("notify", "add", "ops", "failed", *TO, "--queue", "mail*", "--by", "ana")
    assert added.code == Exit.DONE
    assert "notice ops is added; try it: tenure notify test ops" in added.err
    [rule] = tenure("notify", "list", "--json").json["rules"]
    assert (rule["event"], rule["queue"], rule["url"]) == ("failed", "mail*", TO[1])
    assert (rule["secret"], rule["created_by"], rule["group_for"]) == ("ops", "ana", 300)
    for word in ("ops", "failed", "mail*", "standard", TO[1]):
        assert word in tenure("notify", "list").out

    tested = tenure("notify", "test", "ops", "--json")
    assert (
        tenure("job", "show", tested.json["job"], "--json").json["job"]["task"] == "tenure.notice"
    )
    assert tenure("notify", "remove", "ops", "none", "--json").code == Exit.PARTIAL
    assert tenure("notify", "list", "--json").json == {"rules": []}


def test_a_rule_that_does_not_exist_is_not_found(tenure: Command) -> None:
    for command in ("test", "remove"):
        missing = tenure("notify", command, "none")
        assert missing.code == Exit.NOT_FOUND
        assert "there is no notice rule none" in missing.err


def test_a_wrong_rule_is_wrong_usage(tenure: Command) -> None:
    assert tenure("notify", "add", "a", "done", *TO).code == Exit.USAGE
    assert tenure("notify", "add", "a", "failed", "--secret", "ops").code == Exit.USAGE
    assert tenure("notify", "add", "a", "queue_behind", *TO).code == Exit.USAGE
    late = tenure("notify", "add", "a", "queue_behind", *TO, "--threshold", "5m", "--json")
    assert late.json["threshold"] == 300


def test_a_notice_cannot_be_enqueued_by_name(tenure: Command) -> None:
    refused = tenure("job", "enqueue", "tenure.notice")
    assert refused.code == Exit.USAGE
    assert "only rules make notices" in refused.err
