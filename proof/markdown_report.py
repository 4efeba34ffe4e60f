"""A proof's report as Markdown: what ran on what, the faults by kind, figures beside their bars."""

from __future__ import annotations

import platform
import subprocess
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from support import binaries
from support.markdown import table

if TYPE_CHECKING:
    from collections.abc import Mapping

_VERDICTS = {None: "", True: "ok", False: "**missed**"}


def versions() -> dict[str, str]:
    """Of everything that a figure may depend on."""
    server = binaries.find(15) / "postgres"
    output = subprocess.run(  # noqa: S603 - the server that the proofs run on
        [server, "--version"], check=True, capture_output=True, text=True, timeout=10
    ).stdout
    return {
        "tenure": version("tenure"),
        "source": _source(),
        "python": platform.python_version(),
        "postgresql": output.split()[2],
        "kernel": platform.release(),
    }


def _source() -> str:
    """The code on trial: git's name of `src/`, which is the same wherever its files are the same
    (`git rev-parse HEAD:src`). Nothing where there is no history."""
    name = _git("rev-parse", "--short=12", "HEAD:src")
    return f"{name}, changed" if _git("status", "--porcelain", "src") else name


def _git(*words: str) -> str:
    output = subprocess.run(  # noqa: S603 - words of our own
        ["git", *words],  # noqa: S607 - whichever it is
        cwd=binaries.ROOT,
        check=False,
        capture_output=True,
        text=True,
        timeout=10,
    )
    return output.stdout.strip()


def markdown(subject: str, about: Mapping[str, Any], whole: Mapping[str, Any]) -> str:
    """The page of one run; `whole` is what goes into the JSON."""
    faults: Mapping[str, int] = whole["faults"]
    # Beside figures there are lists, of what they were made of: those are for the JSON alone.
    figures = {name: one for name, one in whole["figures"].items() if isinstance(one, dict)}
    missed = len(whole["missed"])
    judged = sum(figure["ok"] is not None for figure in figures.values())
    lines = [
        f"# {subject}",
        f"{judged - missed} of {judged} bars met, in {whole['seconds']:,.0f} s.",
        table(("about", ""), [(name, _shown(value)) for name, value in about.items()]),
    ]
    if faults:
        rows = [(kind, f"{count:,}") for kind, count in sorted(faults.items())]
        total = f"{sum(faults.values()):,}"
        lines += ["## Faults", table(("fault", "times"), [*rows, ("in all", total)])]
    lines += [
        "## Figures",
        table(
            ("figure", "value", "bar", "verdict"),
            [(name, *_judged(figure)) for name, figure in figures.items()],
        ),
    ]
    return "\n\n".join(lines) + "\n"


def _judged(figure: Mapping[str, Any]) -> tuple[str, str, str]:
    unit, bar = figure["unit"], figure["bar"]
    beside = "" if bar is None else f"{figure['sign']} {bar:,g}{unit}"
    return f"{_shown(figure['value'])}{unit}", beside, _VERDICTS[figure["ok"]]


def _shown(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    return f"{value:,.2f}" if isinstance(value, float) else f"{value:,}"
