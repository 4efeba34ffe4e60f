"""What a run found: lines for people, JSON for programs, and bars with a verdict."""

from __future__ import annotations

import json
import os
import platform
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path


@dataclass
class Report:
    """Collects figures while printing them, so that a run that is cut short has shown some."""

    short: bool
    figures: dict[str, Any] = field(default_factory=dict)
    missed: list[str] = field(default_factory=list)

    def title(self, text: str) -> None:
        print(f"\n## {text}", flush=True)

    def forget(self, *prefixes: str) -> None:
        """Drop what an earlier run found, before it is measured again."""
        self.figures = {k: v for k, v in self.figures.items() if not k.startswith(prefixes)}

    def line(self, key: str, text: str, **figures: Any) -> None:
        self.figures[key] = figures
        print(text, flush=True)

    def bar(self, key: str, what: str, value: float, bar: float, unit: str = "") -> None:
        """A figure that should not be above its bar."""
        self._judge(key, what, value, bar, unit, miss="OVER" if value > bar else "")

    def at_least(self, key: str, what: str, value: float, bar: float, unit: str = "") -> None:
        """A figure that should not be below its bar."""
        self._judge(key, what, value, bar, unit, miss="UNDER" if value < bar else "", least=True)

    def _judge(
        self,
        key: str,
        what: str,
        value: float,
        bar: float,
        unit: str,
        *,
        miss: str,
        least: bool = False,
    ) -> None:
        if miss:
            self.missed.append(f"{what}: {value:.2f}{unit}, bar {bar:.4g}{unit}")
        self.figures[f"bar:{key}"] = {
            "what": what,
            "value": value,
            "bar": bar,
            "least": least,
            "unit": unit,
            "ok": not miss,
        }
        print(f"  {miss or 'ok':5} {what}: {value:.2f}{unit} (bar {bar:.4g}{unit})", flush=True)

    def close(self, path: Path) -> None:
        """Write what was found, and say which bars were missed."""
        path.parent.mkdir(parents=True, exist_ok=True)
        about = {
            "at": datetime.now(UTC).isoformat(),
            "python": platform.python_version(),
            "cores": os.cpu_count(),
            "short": self.short,
        }
        path.write_text(json.dumps(about | {"figures": self.figures}, indent=1))
        print(f"\nwritten: {path}")
        for miss in self.missed:
            print(f"misses its bar: {miss}")
        if not self.missed:
            print("every bar is met")
