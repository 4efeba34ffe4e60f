"""The models of the protocol hold, break without each rule, and can do what they should."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from proof.models import tlc
from proof.models.checks import CHECKS
from proof.models.suite import decide, tell
from proof.report import Report
from support.binaries import ROOT

if TYPE_CHECKING:
    from pathlib import Path

    from proof.models.checks import Check

SOUND = [check for check in CHECKS if not check.broken and check.in_short]
BROKEN = [check for check in CHECKS if check.broken]


@pytest.mark.parametrize("check", SOUND, ids=lambda check: check.name)
def test_a_model_with_every_rule_holds(check: Check, tmp_path: Path) -> None:
    verdict = decide(check, tmp_path, short=True)

    assert verdict.violated is None
    assert verdict.met == set(check.model.behaviours)


@pytest.mark.parametrize("check", BROKEN, ids=lambda check: check.name)
def test_a_model_without_a_rule_breaks(check: Check, tmp_path: Path) -> None:
    verdict = decide(check, tmp_path, short=True)

    assert verdict.violated == check.broken
    # TLC searches with two threads, so a failover may come before the first claim of the path.
    assert {"Claim", "Write"} & set(verdict.path)


def test_every_rule_is_left_out_once() -> None:
    left_out = {(check.model.module, rule) for check in BROKEN for rule in check.without}

    assert left_out == {(c.model.module, rule) for c in CHECKS for rule in c.model.rules}


def test_a_missing_jar_is_an_error_with_a_remedy(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(tlc, "JAR", ROOT / "no.jar")

    with pytest.raises(tlc.ModelChecker, match=r"no\.jar is missing; run: just tla"):
        tlc.check("LeaseProtocol", {}, [], tmp_path / "x.cfg")


def test_a_check_without_a_verdict_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(tlc.ModelChecker, match="came to no verdict"):
        tlc.check("LeaseProtocol", {}, ["TypeOK"], tmp_path / "x.cfg")


@pytest.mark.parametrize(
    ("check", "violated", "met"),
    [
        (SOUND[0], "OneResult", SOUND[0].model.behaviours),
        (SOUND[0], None, SOUND[0].model.behaviours[1:]),
        (BROKEN[0], None, ()),
        (BROKEN[0], "TypeOK", ()),
    ],
)
def test_a_verdict_that_was_not_expected_is_a_miss(
    check: Check, violated: str | None, met: tuple[str, ...]
) -> None:
    report = Report({})

    tell(check, tlc.Verdict(violated, ("Claim",), frozenset(met), 100, 1.0, 1.0, ""), report)

    assert len(report.missed) == 1
