"""What bench makes of figures: medians, verdicts, tables and charts. No server, no load."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from bench.measure import Spread
from bench.report import Report
from bench.speed import chart, meters, short, tables
from bench.speed.contender import Place
from bench.speed.drain import Round
from bench.speed.draining import paired

SVG = "{http://www.w3.org/2000/svg}"


def _spread(median: float) -> dict[str, float]:
    return {"median": median, "low": median * 0.9, "high": median * 1.1}


def _drained(name: str, rate: float) -> dict[str, Any]:
    keys = ("database_us", "worker_us", "wal_bytes", "commits", "fill_rate")
    spreads = {key: _spread(1e6 / rate) for key in keys}
    return {"name": name, "children": 1, "rate": _spread(rate)} | spreads


FIGURES: dict[str, Any] = {
    "drain:Tenure": _drained("Tenure", 20_000) | {"statements": 0.0042},
    "drain:Peer": _drained("Peer <& co>", 12_000),
    "enqueue:fill:Tenure": {
        "name": "Tenure",
        "way": "in bulk",
        "rate": _spread(30_000),
        "database_us": _spread(20),
    },
    "absent:Oban": {"name": "Oban", "why": "wants Python 3.12\nand more"},
    "about:Tenure": {"name": "Tenure", "version": "0.1", "mode": "async", "keeps": "everything"},
    "bar:x": {"what": "x", "value": 0.5, "bar": 0.7, "unit": " ×", "least": True, "ok": False},
}


_WAITED = {"count": 3, "p50": 3.5, "p95": 6.0, "p99": 1600.0, "worst": 2000.0}
_COST = {"database_us": 40.0, "worker_us": 50.0}
WAITS: dict[str, Any] = {
    "arrive:20:tenure": _WAITED,
    "arrive:20:tenure:calm": _WAITED,
    "arrive:20:PgQueuer": _WAITED,
    "arrive:500:one by one": _WAITED,
    "arrive:500:one by one:shares": {"came": 495.0},
    "steady:0.5": {"came": 9_300.0, "left": 0} | _COST | _WAITED,
    "slots:1": _COST,
    "slots": {"rate": _spread(8_500), "busy": 85.0},
    "growth:empty": _COST | _WAITED,
    "endure:jobs": {"acknowledged": 1_000_000, "archived": 1_000_000, "accepted": 1_000_000},
    "endure:losses": {"losses": 90, "returns": [31.0, 30.5, 36.0]},
    "endure:machine": {"late": 0},
}


def _round(rate: float) -> Round:
    return Round(rate, 1, 1, 1, 1, 1, 1)


def test_a_spread_is_the_median_with_both_ends() -> None:
    assert Spread.of([3.0, 1.0, 2.0]) == Spread(2.0, 1.0, 3.0)


def test_ratios_are_taken_round_by_round() -> None:
    ours, others = [_round(r) for r in (10, 20, 30)], [_round(r) for r in (10, 10, 60)]
    assert paired(ours, others) == 1.0


@pytest.mark.parametrize(
    ("value", "most", "least"), [(1.0, True, True), (1.1, False, True), (0.9, True, False)]
)
def test_bars_go_both_ways(value: float, most: bool, least: bool) -> None:
    report = Report(short=True)
    report.bar("most", "at most", value, 1.0)
    report.at_least("least", "at least", value, 1.0)
    assert (report.figures["bar:most"]["ok"], report.figures["bar:least"]["ok"]) == (most, least)
    assert len(report.missed) == (not most) + (not least)


@pytest.mark.parametrize(("misses", "stays"), [([], 0), ([True, False], 0), ([True, True], 1)])
def test_a_part_that_misses_is_measured_once_more(misses: list[bool], stays: int) -> None:
    report, left = Report(short=True), list(misses) or [False]

    def part(_: object, report: Report) -> None:
        report.at_least("x", "x", 0.0 if left.pop(0) else 1.0, 1.0)

    short._twice(part, None, report)  # type: ignore[arg-type]
    assert len(report.missed) == stays
    assert not left


def test_what_is_measured_again_leaves_nothing_of_before() -> None:
    report = Report(short=False, figures=dict(FIGURES))
    report.forget("drain:", "absent:")
    assert report.figures.keys() == {"enqueue:fill:Tenure", "about:Tenure", "bar:x"}


def test_charts_are_well_formed_and_name_every_subject() -> None:
    for text in chart.charts(FIGURES).values():
        root = ET.fromstring(text)  # noqa: S314 - our own
        words = [element.text for element in root.iter(f"{SVG}text")]
        assert {"Tenure", "Peer <& co>"} <= set(words)
        assert root.find(f"{SVG}title") is not None
        described = root.find(f"{SVG}desc")
        assert described is not None
        assert "Peer <& co>" in (described.text or "")
        assert "prefers-color-scheme: dark" in text


def test_the_longest_bar_fits() -> None:
    root = ET.fromstring(chart.charts(FIGURES)["drain.svg"])  # noqa: S314 - our own
    ends = [float(r.attrib["x"]) + float(r.attrib["width"]) for r in root.iter(f"{SVG}rect")]
    assert max(ends) <= chart.NAMES + chart.BARS


def test_tables_tell_what_was_measured_and_what_was_not() -> None:
    drain = tables.TABLES["drain"](FIGURES)
    assert "| Tenure | 20,000 (18,000–22,000) |" in drain
    assert "| 0.0042 |" in drain
    assert "| Oban | wants Python 3.12 |" in tables.TABLES["absent"](FIGURES)


def test_the_page_has_a_place_for_every_table() -> None:
    marks = re.findall(r"<!-- (\w+) -->", tables.PAGE.read_text())
    assert sorted(marks) == sorted(tables.TABLES)


def test_the_page_says_where_it_was_measured() -> None:
    run = {"at": "2026-11-15T16:00:00+00:00", "cores": 2, "python": "3.11.7"}
    text = tables.machine(FIGURES | {"run": run, "postgresql": "15.18 (Debian)"})
    assert "Run on 2026-11-15, on 2 cores, with PostgreSQL 15.18 and Python 3.11.7." in text


_PROSE = {"machine", "charts", "slots", "endurance"}


@pytest.mark.parametrize("name", sorted(tables.TABLES.keys() - _PROSE))
def test_rows_have_as_many_cells_as_their_head(name: str) -> None:
    lines = tables.TABLES[name](FIGURES | WAITS).splitlines()
    assert len({line.count("|") for line in lines}) == 1
    assert len(lines) > 2


def test_waits_are_reported_by_session_and_lock() -> None:
    lines = tables.TABLES["arrivals"](WAITS).splitlines()[2:]
    assert lines == [
        "| 20/s | Tenure | 3.5 ms | 6 ms | 1.6 s | 2 s |",
        "| 20/s | PgQueuer | 3.5 ms | 6 ms | 1.6 s | 2 s |",
        "| 500/s, one by one | Tenure | 3.5 ms | 6 ms | 1.6 s | 2 s |",
    ]
    assert "8,500 jobs/s (7,650–9,350), 50 µs" in tables.TABLES["slots"](WAITS)
    sentence = tables.TABLES["endurance"](WAITS)
    assert "90 were lost with a killed worker and started again 31.0 s after the kill" in sentence
    assert "36.0 s at most" in sentence


def test_counts_of_all_processes_are_added(tmp_path: Any) -> None:
    (tmp_path / "counts").mkdir()
    for name, number in (("1", 3), ("2", 40_000)):
        (tmp_path / "counts" / name).write_bytes(number.to_bytes(8, "little"))
    assert Place("", tmp_path, 0, None).count() == 40_003


def test_processor_time_is_of_the_family_with_those_that_ended() -> None:
    """A thread that ended, a child that was waited for: both worked for 0.1 s."""
    work = "import time\nwhile time.thread_time() < 0.1: pass\n"
    program = (
        "import subprocess, sys, threading, time\n"
        f"work = {work!r}\n"
        "thread = threading.Thread(target=exec, args=(work, {}))\n"
        "thread.start(); thread.join()\n"
        "subprocess.run([sys.executable, '-c', work], check=True)\n"
        "print('done', flush=True); time.sleep(60)\n"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            process.stdout.readline()
            assert process.pid in meters.family(os.getpid())
            assert meters.family_seconds(process.pid) >= 0.2
            before = time.process_time()
            assert meters.family_seconds(os.getpid()) >= before + 0.2
        finally:
            process.kill()
