"""The page of the proof says what the kept runs say, and no more."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from proof import totals

if TYPE_CHECKING:
    from pathlib import Path


def test_the_page_adds_up_the_kept_runs() -> None:
    page = totals.PAGE.read_text()

    assert totals.written(page, totals.runs()) == page


def test_every_kept_run_that_missed_a_bar_is_explained_on_the_page() -> None:
    assert totals.unexplained(totals.PAGE.read_text(), totals.runs()) == []


MISSED = {"name": "spot", "at": "2026-11-17T16:40:12+00:00", "missed": ["innocents failed"]}
PAGE = """## Runs

| spot | 2026-11-17 16:40 | innocents failed |

## Runs that failed, and what they led to

| run | the failure | what it led to |
|---|---|---|
{row}

## Next
"""


@pytest.mark.parametrize(
    ("row", "missing"),
    [
        ("| `just prove spot`, seed 4, 2026-11-17 16:40 | It failed. | A fix. |", []),
        ("| `just prove spot`, seed 4, 2026-11-17 16:41 | It failed. | A fix. |", [MISSED]),
        ("| `just prove spots`, 2026-11-17 16:40 | It failed. | A fix. |", [MISSED]),
        ("", [MISSED]),
    ],
)
def test_a_missed_run_needs_a_row_with_its_name_and_time(
    row: str, missing: list[dict[str, object]]
) -> None:
    passed = MISSED | {"name": "pauses", "missed": []}
    expected = ["spot, 2026-11-17 16:40" for _ in missing]
    assert totals.unexplained(PAGE.format(row=row), [MISSED, passed]) == expected


@pytest.mark.parametrize(("explained", "code"), [(True, 0), (False, 1)])
def test_totals_exits_with_1_only_if_a_missed_run_is_not_explained(
    explained: bool, code: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    page = tmp_path / "proof.md"
    text = totals.PAGE.read_text()
    page.write_text(text if explained else text.replace("## Runs that failed", "## Others"))
    monkeypatch.setattr(totals, "PAGE", page)
    assert totals.main(["--runs", str(tmp_path / "none")]) == code
