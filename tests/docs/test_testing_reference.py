"""Every public name of `tenure.testing`, its parameters and its fixtures are in the reference."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tenure import testing
from tenure.testing import plugin
from tests.docs.test_python_reference import first_column, members, parameters, section

if TYPE_CHECKING:
    from collections.abc import Callable


def test_every_public_name_is_documented() -> None:
    assert first_column("testing.md", "") == set(testing.__all__)
    assert all(getattr(testing, name) for name in testing.__all__)


@pytest.mark.parametrize("function", [testing.drain, testing.adrain])
def test_every_parameter_of_a_drain_is_documented(function: Callable[..., Any]) -> None:
    assert first_column("testing.md", "drain(…)") == parameters(function)


def test_every_member_of_what_was_drained_is_documented() -> None:
    assert first_column("testing.md", "drain(…)", 1) == members(testing.Drained)


@pytest.mark.parametrize("function", [testing.assert_enqueued, testing.aassert_enqueued])
def test_every_parameter_of_an_assertion_is_documented(function: Callable[..., Any]) -> None:
    assert first_column("testing.md", "assert_enqueued(…)") == parameters(function)


@pytest.mark.parametrize("function", [testing.assert_not_enqueued, testing.aassert_not_enqueued])
def test_the_opposite_takes_no_other(function: Callable[..., Any]) -> None:
    assert parameters(function) < first_column("testing.md", "assert_enqueued(…)")


def test_every_fixture_is_documented() -> None:
    fixtures = {name for name in vars(plugin) if name.startswith("tenure_")}
    assert first_column("testing.md", "pytest") == fixtures
    assert "TENURE_TEST_DATABASE_URL" in section("testing.md", "pytest")
