"""What a proof found: figures, each beside its bar, with a verdict. Lines, JSON and Markdown."""

from __future__ import annotations

import json
import time
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from proof.markdown_report import markdown, versions

if TYPE_CHECKING:
    from pathlib import Path


@dataclass
class Report:
    """Prints each figure when it is known, so that a run that is cut short has shown some."""

    about: dict[str, Any]
    figures: dict[str, Any] = field(default_factory=dict)
    missed: list[str] = field(default_factory=list)
    # Of what was missed, that which no second run excuses.
    final: list[str] = field(default_factory=list)
    title: str = ""
    jobs: int = 0
    faults: list[tuple[str, float, float]] = field(default_factory=list)
    parts: list[tuple[str, float]] = field(default_factory=list)
    # Jobs that ended per second, by seconds since the beginning, if recorded.
    pace: list[tuple[float, float]] = field(default_factory=list)
    began_at: float = field(default_factory=time.monotonic)
    # Of what was on trial when it began, whatever is committed meanwhile.
    versions: dict[str, str] = field(default_factory=versions)

    @property
    def excusable(self) -> bool:
        """Whether something was missed, and the machine may be to blame for all of it."""
        return bool(self.missed) and not self.final

    def fault(self, kind: str, lasted: float = 0.0) -> None:
        """A fault was injected, which is over now; `lasted` is how many seconds it was in force."""
        until = time.monotonic() - self.began_at
        self.faults.append((kind, until - lasted, until))

    def part(self, title: str) -> None:
        """Begin a part; the names of its figures begin with its title."""
        self.title = title
        self.parts.append((title, time.monotonic() - self.began_at))
        print(f"\n## {title}", flush=True)

    def note(self, what: str, value: object, unit: str = "") -> None:
        """A figure without a bar."""
        self._line(what, value, None, "", unit)

    def at_least(self, what: str, value: float, bar: float, unit: str = "") -> None:
        """A figure that must not be below its bar."""
        self._line(what, value, bar, ">=", unit, ok=value >= bar)

    def at_most(
        self, what: str, value: float, bar: float, unit: str = "", *, timed: bool = False
    ) -> None:
        """A figure that must not be above its bar. A bar of 0 says what must not be: missed, it is
        final. Unless it is `timed`: a wait, a lease or a slack that a slow machine alone can
        outlast is part of it; the caller says which."""
        ok = value <= bar
        self._line(what, value, bar, "<=", unit, ok=ok)
        if not ok and bar == 0 and not timed:
            self.final.append(self.missed[-1])

    def none(self, what: str, found: Any, *, timed: bool = False) -> None:
        """Something of which there must not be one; some of what there is goes into the JSON.
        For `timed` see `at_most`."""
        found = list(found)
        self.at_most(what, len(found), 0, timed=timed)
        if found:
            self.figures[f"{self.title}: {what}"]["some"] = [str(one) for one in found[:20]]

    def _line(
        self,
        what: str,
        value: object,
        bar: float | None,
        sign: str,
        unit: str,
        *,
        ok: bool | None = None,
    ) -> None:
        key = f"{self.title}: {what}"
        self.figures[key] = {"value": value, "bar": bar, "ok": ok, "sign": sign, "unit": unit}
        shown = f"{value:,.2f}" if isinstance(value, float) else f"{value:,}"
        beside = "" if bar is None else f"{sign} {bar:,g}{unit}"
        verdict = {None: "", True: "ok", False: "MISSED"}[ok]
        print(f"{what:<64} {shown + unit:>12}  {beside:<12} {verdict}".rstrip(), flush=True)
        if ok is False:
            self.missed.append(f"{key}: {shown}{unit}, bar {sign} {bar:,g}{unit}")

    def close(self, path: Path) -> None:
        """Write the JSON and, beside it, the Markdown; say whether every bar is met."""
        path.parent.mkdir(parents=True, exist_ok=True)
        at = datetime.now(UTC).isoformat(timespec="seconds")
        about = {"at": at} | self.versions | self.about
        whole = about | {
            "seconds": round(time.monotonic() - self.began_at, 1),
            "jobs": self.jobs,
            "faults": dict(Counter(kind for kind, _, _ in self.faults)),
            "missed": self.missed,
            "final": self.final,
            "figures": self.figures,
        }
        path.write_text(json.dumps(whole, indent=1, default=str))
        path.with_suffix(".md").write_text(markdown(path.stem, about, whole))
        print(f"\nwritten: {path}")
        for miss in self.missed:
            print(f"missed: {miss}")
        if not self.missed:
            print("every bar is met")
