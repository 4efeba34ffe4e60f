"""A report is told as JSON, as Markdown and as a picture."""

from __future__ import annotations

import json
import platform
import time
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest

from proof.markdown_report import versions
from proof.report import Report
from proof.timeline import draw

if TYPE_CHECKING:
    from pathlib import Path

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def report() -> Report:
    """As if it had begun 100 s ago."""
    report = Report({"seed": 7}, versions=versions(), began_at=time.monotonic() - 100)
    report.part("all & sundry")
    report.fault("kill -9 of the server")
    report.fault("cut | off", lasted=50)
    report.fault("cut | off")
    report.at_least("jobs", 1000, 900)
    report.at_most("longest wait", 3.456, 3, " s")
    report.note("kinds", 2)
    report.pace += [(0, 100), (50, 0), (100, 250)]
    return report


def test_the_page_has_versions_faults_and_verdicts(report: Report, tmp_path: Path) -> None:
    report.close(tmp_path / "sample.json")

    page = (tmp_path / "sample.md").read_text().splitlines()
    assert "# sample" in page
    assert any(line.startswith("1 of 2 bars met, in 10") for line in page)
    assert "| seed | 7 |" in page
    assert f"| kernel | {platform.release()} |" in page
    assert any(line.startswith("| postgresql | 15.") for line in page)
    assert "| cut \\| off | 2 |" in page
    assert "| in all | 3 |" in page
    assert "| all & sundry: jobs | 1,000 | >= 900 | ok |" in page
    assert "| all & sundry: longest wait | 3.46 s | <= 3 s | **missed** |" in page
    assert "| all & sundry: kinds | 2 |  |  |" in page


def test_the_json_says_the_same(report: Report, tmp_path: Path) -> None:
    report.close(tmp_path / "sample.json")

    whole = json.loads((tmp_path / "sample.json").read_text())
    assert whole["faults"] == {"kill -9 of the server": 1, "cut | off": 2}
    assert len(whole["missed"]) == 1
    assert {"tenure", "python", "postgresql", "kernel", "seed", "at"} <= whole.keys()


def test_the_picture_has_a_row_for_each_kind(report: Report, tmp_path: Path) -> None:
    report.faults = [(kind, round(since), round(until)) for kind, since, until in report.faults]
    draw(report, tmp_path / "sample.svg")

    picture = ET.parse(tmp_path / "sample.svg").getroot()  # noqa: S314 - our own
    texts = [text.text for text in picture.iter(f"{SVG}text")]
    assert {"kill -9 of the server (1)", "cut | off (2)", "all & sundry"} <= set(texts)
    assert "3 faults of 2 kinds in 100 s; 0 to 250 jobs ended per second" in texts
    marks = [
        (round(float(mark.attrib["x"])), round(float(mark.attrib["width"])))
        for mark in picture.iter(f"{SVG}rect")
        if mark.get("class") == "fault"
    ]
    assert marks == [(810, 2), (530, 280), (810, 2)]
    assert len(list(picture.iter(f"{SVG}polyline"))) == 1


def test_a_run_without_faults_or_pace_is_drawn_too(tmp_path: Path) -> None:
    draw(Report({}), tmp_path / "sample.svg")

    picture = ET.parse(tmp_path / "sample.svg").getroot()  # noqa: S314 - our own
    assert not list(picture.iter(f"{SVG}polyline"))
