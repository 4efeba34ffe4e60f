"""The long strides of the schedules' proof against the oracle's walk minute by minute."""

from __future__ import annotations

from datetime import timedelta

from proof.schedules.oracle import EXPRESSIONS, Walk
from proof.schedules.plain_cron import plain
from proof.schedules.transitions import transitions
from proof.schedules.walking import walk


def test_long_strides_and_small_steps_find_the_same_ticks() -> None:
    """At every fortieth change of a clock from 2020 to 2035, for every expression."""
    for change in transitions(timedelta(days=20))[::40]:
        slow = Walk(change)
        for expression in EXPRESSIONS:
            fast = walk(expression, change.zone, slow.begin, slow.end)
            assert fast == slow.ticks(plain(expression)), (expression, change)
