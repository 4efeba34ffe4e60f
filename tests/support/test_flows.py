"""The way of a job through the source becomes no longer than it is."""

from __future__ import annotations

import subprocess
import sys

# Upper bounds: files, and changes of file. They are the figures of today; lower them with the code.
BOUNDS = {
    "enqueue": (14, 25),
    "claim to settled": (33, 132),
    "retry by app.admin": (12, 42),
    # Each request passes the front (hosts, proxies, addresses) and has its turn at the database.
    "retry over HTTP": (18, 85),
    "retry by the dashboard": (23, 103),
    "retry by the command line": (23, 77),
}


def test_no_flow_passes_through_more_files_than_before() -> None:
    """In a process of its own: pytest's plugins and other tests' tasks are not part of a flow."""
    done = subprocess.run(
        [sys.executable, "-m", "support.flows"],
        check=True,
        capture_output=True,
        text=True,
        timeout=100,
    )
    lines = [line for line in done.stdout.splitlines() if not line.startswith(" ")]
    found = {}
    for line in lines:
        name, _, figures = line.partition(": ")
        files, *_, changes = (int(word) for word in figures.split() if word.isdigit())
        found[name] = files, changes
    assert found.keys() == BOUNDS.keys()
    longer = {
        name: figures for name, figures in found.items() if not _within(figures, BOUNDS[name])
    }
    assert longer == {}


def _within(figures: tuple[int, int], bounds: tuple[int, int]) -> bool:
    return figures[0] <= bounds[0] and figures[1] <= bounds[1]
