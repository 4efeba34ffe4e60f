"""What a run found: lines for people, JSON for programs, and bars with a verdict."""

from __future__ import annotations

import json
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

    def line(self, key: str, text: str, **figures: Any) -> None:
        self.figures[key] = figures
        print(text, flush=True)

    def bar(self, key: str, what: str, value: float, bar: float, unit: str = "") -> None:
        """A figure that should not be above its bar."""
        ok = value <= bar
        if not ok:
            self.missed.append(f"{what}: {value:.2f}{unit}, bar {bar:g}{unit}")
        self.figures[f"bar:{key}"] = {"value": value, "bar": bar, "ok": ok}
        print(
            f"  {'ok  ' if ok else 'OVER'} {what}: {value:.2f}{unit} (bar {bar:g}{unit})",
            flush=True,
        )

    def close(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        about = {"at": datetime.now(UTC).isoformat(), "python": platform.python_version()}
        path.write_text(
            json.dumps(about | {"short": self.short, "figures": self.figures}, indent=1)
        )
        print(f"\nwritten: {path}")
        for miss in self.missed:
            print(f"over its bar: {miss}")
        if not self.missed:
            print("every bar is met")
