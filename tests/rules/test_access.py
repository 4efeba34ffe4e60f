"""What a grant allows: every scope against every other, patterns of queues, who covers whom."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure._model.access import Scope
from tenure._rules.access import allows, covers, grant, visible
from tenure.errors import InvalidValue

if TYPE_CHECKING:
    from tenure._model.access import Grant

names = st.text("ab.", min_size=1, max_size=4).filter(lambda name: name[0] != ".")
patterns = st.one_of(names, names.map(lambda name: f"{name}*"), st.just("*"))
grants = st.builds(
    grant, st.sets(st.sampled_from(list(Scope)), min_size=1), st.sets(patterns, min_size=1)
)


@pytest.mark.parametrize("held", Scope)
@pytest.mark.parametrize("requested", Scope)
def test_a_scope_allows_itself_and_admin_allows_all(held: Scope, requested: Scope) -> None:
    expected = held is requested or held is Scope.ADMIN
    assert allows(grant([held], ["mail"]), requested, "mail") is expected
    assert allows(grant([held], ["*"]), requested) is expected
    assert not allows(grant([held], ["mail"]), requested, "bulk")


@pytest.mark.parametrize(
    ("pattern", "queue", "expected"),
    [
        ("*", "mail", True),
        ("*", "*", True),
        ("mail", "mail", True),
        ("mail", "Mail", False),
        ("mail", "mail.eu", False),
        ("mail", "mai", False),
        ("mail", "*", False),
        ("mail.*", "mail.eu", True),
        ("mail.*", "mail.eu.west", True),
        ("mail.*", "mail.", True),
        ("mail.*", "mail", False),
        ("mail.*", "mailxeu", False),
        ("mail.*", "xmail.eu", False),
        ("mail*", "mail", True),
        ("mail*", "mailing", True),
        ("m*", "*", False),
    ],
)
def test_a_pattern_is_a_name_or_how_names_begin(pattern: str, queue: str, expected: bool) -> None:
    assert allows(grant(["read"], [pattern]), Scope.READ, queue) is expected


def test_one_of_several_patterns_is_enough() -> None:
    both = grant(["read", "work"], ["mail", "bulk.*"])
    assert visible(both, Scope.READ, ["bulk.a", "x", "mail", "bulk"]) == ["bulk.a", "mail"]
    assert visible(both, Scope.OPERATE, ["bulk.a", "mail"]) == []


def test_an_admin_of_some_queues_has_no_say_over_the_installation() -> None:
    mail = grant(["admin"], ["mail.*"])
    assert allows(mail, Scope.OPERATE, "mail.eu")
    assert not any(allows(mail, scope) for scope in Scope)


@pytest.mark.parametrize(
    ("scopes", "queues", "given"),
    [
        (["write"], ["*"], "scope must be one of enqueue, work, read"),
        ([], ["*"], "at least one scope and one queue"),
        (["read"], [], "at least one scope and one queue"),
        ("read", ["*"], "scopes must be a list, got the string 'read'"),
        (["read"], "mail", "queues must be a list"),
        (["read"], [""], "a queue pattern must be"),
        (["read"], ["*mail"], "a queue pattern must be"),
        (["read"], ["ma*il"], "a queue pattern must be"),
        (["read"], ["**"], "a queue pattern must be"),
        (["read"], ["mail\n"], "a queue pattern must be"),
        (["read"], ["a" * 201], "a queue pattern must be"),
        (["read"], ["mail.?"], "a queue pattern must be"),
    ],
)
def test_value_that_is_not_a_grant_is_refused_with_the_reason(
    scopes: list[str], queues: list[str], given: str
) -> None:
    with pytest.raises(InvalidValue) as refused:
        grant(scopes, queues)
    assert given in str(refused.value)


def test_scopes_are_in_their_order_and_each_once() -> None:
    one = grant(["admin", "read", "read"], ["b", "a", "b"])
    assert one.scopes == (Scope.READ, Scope.ADMIN)
    assert one.queues == ("b", "a")


@given(grants, grants, st.sampled_from(list(Scope)), st.one_of(names, st.just("*")))
def test_what_a_covered_grant_allows_the_covering_one_allows(
    one: Grant, other: Grant, scope: Scope, queue: str
) -> None:
    """A token cannot grant more than it has."""
    if covers(one, other) and allows(other, scope, queue):
        assert allows(one, scope, queue)


@given(grants)
def test_a_grant_covers_itself_and_an_admin_of_all_covers_each(one: Grant) -> None:
    assert covers(one, one)
    assert covers(grant(["admin"], ["*"]), one)
