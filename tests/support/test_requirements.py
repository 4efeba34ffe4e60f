"""The list of requirements, and the tests that claim them."""

from __future__ import annotations

from support import requirements


def test_every_requirement_is_listed_in_order() -> None:
    assert list(requirements.requirements()) == [f"R{number}" for number in range(1, 40)]


def test_every_claim_names_a_requirement_that_exists() -> None:
    known = requirements.requirements()
    claims = requirements.claims()
    assert len(claims) > 500
    assert [claim for claim in claims if not known.keys() >= set(claim.numbers)] == []


def test_a_claim_is_listed_under_each_of_its_requirements() -> None:
    lines = list(requirements.lines(["R1", "R17"]))
    assert [line.split()[0] for line in lines if not line.startswith(" ")] == ["R1", "R17"]
    assert any(
        "test_a_held_key_returns_the_first_job" in line and "test_sql_enqueue" in line
        for line in lines
    )
