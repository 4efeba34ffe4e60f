"""`just prove --short` hands its word to every subject, and none may be startled by it."""

from __future__ import annotations

from importlib import import_module

import pytest

from proof.__main__ import SUBJECTS

# It runs nothing: it adds up what long runs have left.
_NOT_SHORT = {"totals"}


@pytest.mark.parametrize("subject", sorted(SUBJECTS.keys() - _NOT_SHORT))
def test_every_subject_has_a_short_form(subject: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        import_module(SUBJECTS[subject]).main(["--help"])

    assert left.value.code == 0
    assert "[--short" in capsys.readouterr().out
