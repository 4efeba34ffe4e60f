"""The tables of docs/evidence/peers.md, from the figures of a full run."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from support.binaries import ROOT
from support.markdown import fill, table

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

PAGE = ROOT / "docs/evidence/peers.md"
# The figures of each test.
SHOWN = {
    "kill": ("in_hand", "done", "stuck", "given_up", "lost", "ended_twice", "seconds"),
    "stop": ("taken_after", "outcome"),
}


def write(figures: Path) -> None:
    """Put the figures of a run into the page."""
    found = json.loads(figures.read_text())
    parts = {name: made(found) for name, made in TABLES.items()}
    PAGE.write_text(fill(PAGE.read_text(), parts))
    print(f"written: {PAGE}")


def _run(found: Mapping[str, Any]) -> str:
    return (
        f"Run on {found['at'][:10]} with PostgreSQL {found['postgresql'].split()[0]}, Redis and "
        f"Python {found['python']}. Each queue was watched for {found['watch']:g} s. "
        "The machine also ran other work."
    )


def _settings(found: Mapping[str, Any]) -> str:
    rows = [
        [row["name"], row["kill"].get("version", "–"), row["settings"]] for row in found["rows"]
    ]
    return table(["", "version", "settings"], rows, words=3)


def _kill(found: Mapping[str, Any]) -> str:
    head = ["", "running", "done", "stuck", "failed", "lost", "ended twice", "all done after"]
    return table([*head, "state in the store"], [_killed(row) for row in found["rows"]])


def _killed(row: Mapping[str, Any]) -> list[str]:
    kill = row["kill"]
    if "not_tried" in kill:
        return [row["name"], *["–"] * 7, "not tried"]
    figures = [str(kill[what]) for what in SHOWN["kill"][:-1]]
    seconds = "–" if kill["seconds"] is None else f"{kill['seconds']:g} s"
    return [row["name"], *figures, seconds, ", ".join(kill["words"]) or "–"]


def _stop(found: Mapping[str, Any]) -> str:
    head = [
        "",
        "late result",
        "taken over after",
        "states meanwhile",
        "final state",
    ]
    return table(head, [_stopped(row) for row in found["rows"]], words=2)


def _stopped(row: Mapping[str, Any]) -> list[str]:
    stop = row["stop"]
    if "not_tried" in stop:
        return [row["name"], "not tried", "–", "–", "–"]
    if stop["taken_after"] is None:
        within = f"not within {stop['watched']:g} s"
        return [row["name"], "not applicable", within, stop["held"], "–"]
    meanwhile = ", then ".join(_state(look) for look in stop["seen"])
    after = f"{stop['taken_after']:g} s"
    return [row["name"], stop["outcome"], after, meanwhile, _state(stop["last"])]


def _state(look: list[Any]) -> str:
    """Return the state in the store, and whose result it holds."""
    state, result = look
    return state if result is None else f"{state} by {result}"


TABLES: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "run": _run,
    "settings": _settings,
    "kill": _kill,
    "stop": _stop,
}
