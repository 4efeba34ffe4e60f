"""`just prove --short` hands its word to every subject, and none may be startled by it."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest

from proof import batteries
from proof.__main__ import SUBJECTS

# It runs nothing: it adds up what long runs have left.
_NOT_SHORT = {"totals"}


@pytest.mark.parametrize("subject", sorted(SUBJECTS.keys() - _NOT_SHORT))
def test_every_subject_has_a_short_form(subject: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        import_module(SUBJECTS[subject]).main(["--help"])

    assert left.value.code == 0
    assert "[--short" in capsys.readouterr().out


def test_every_battery_that_measures_is_there_and_all_run_in_the_short_form(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ran: list[str] = []

    def note(_form: str, _at_a_time: str, *suites: str) -> int:
        ran.extend(suites)
        return 0

    monkeypatch.setattr(batteries, "_pytest", note)
    monkeypatch.setattr("proof.crowd.suite.main", lambda _given: 0)

    assert batteries.main(["--short"]) == 0
    assert sorted(ran) == batteries._all()
    assert {Path(suite).stem.removeprefix("test_") for suite in ran} >= batteries._MEASURED
