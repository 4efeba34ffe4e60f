"""The chart of waits over time."""

from __future__ import annotations

from xml.etree import ElementTree as ET

from bench.speed.timeline import Timeline, duration
from bench.speed.waits import Waits

SVG = "{http://www.w3.org/2000/svg}"


def _chart() -> Timeline:
    waits = [Waits(10, n, n * 2, n * 30.0, n * 40) for n in (3.0, 4.0, 5.0)]
    return Timeline("waits & more", 10.0, waits, [8.0], (15.0, 25.0), "held open")


def test_a_chart_is_well_formed_and_has_a_line_for_each_point() -> None:
    root = ET.fromstring(_chart().svg())  # noqa: S314 - it is our own
    lines = root.findall(f"{SVG}polyline")
    assert [len(line.attrib["points"].split()) for line in lines] == [3, 3, 3]
    assert root.attrib["role"] == "img"
    assert root.findtext(f"{SVG}title") == "waits & more"


def test_a_chart_says_in_words_what_it_shows() -> None:
    assert "p99 between 90 ms and 150 ms" in _chart().words()
    assert "killed 1 times" in _chart().words()


def test_longer_waits_are_drawn_higher() -> None:
    root = ET.fromstring(_chart().svg())  # noqa: S314 - it is our own
    points = [line.attrib["points"].split()[0] for line in root.findall(f"{SVG}polyline")]
    p50, p95, p99 = (float(point.split(",")[1]) for point in points)
    assert p50 > p95 > p99


def test_durations_read_in_their_unit() -> None:
    assert [duration(ms) for ms in (0.5, 12.0, 1500.0)] == ["0.5 ms", "12 ms", "1.5 s"]
