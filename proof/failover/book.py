"""The append-only book of what each client asked for and what it was told, outside the database."""

from __future__ import annotations

import os
import time
from collections import Counter
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

REQUESTED, ACKNOWLEDGED, UNKNOWN, REFUSED = "asked", "acknowledged", "unknown", "refused"


class Pen:
    """Writes lines; each is one `write` to a file opened for appending, so none is torn."""

    def __init__(self, path: str) -> None:
        self._fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)

    def write(self, what: str, key: str, *rest: object) -> None:
        """Say one thing of a key, with the time of the machine's monotonic clock."""
        words = " ".join(str(word) for word in rest).replace("\n", " ")
        os.write(self._fd, f"{time.monotonic():.4f} {what} {key} {words}\n".encode())


@dataclass
class Book:
    """What the clients wrote, read in the end."""

    requested: set[str] = field(default_factory=set)
    # The job that the key was last acknowledged with, and all that it ever was.
    current: dict[str, int] = field(default_factory=dict)
    acknowledged: set[tuple[str, int]] = field(default_factory=set)
    times: list[float] = field(default_factory=list)
    # When each lane was last acknowledged something; a key is its lane and a number.
    lanes: dict[str, float] = field(default_factory=dict)
    why: Counter[str] = field(default_factory=Counter)

    @property
    def unanswered(self) -> set[str]:
        """Keys that were asked for and never acknowledged."""
        return self.requested - self.current.keys()

    def served(self, since: float) -> int:
        """How many lanes were acknowledged something since then."""
        return len({lane for lane, at in self.lanes.items() if at > since})

    def count_answers(self, beginning: str) -> int:
        """How often clients were told something that begins so, instead of an acknowledgement."""
        return sum(count for what, count in self.why.items() if what.startswith(beginning))

    def gap(self, since: float, until: float) -> float:
        """The longest time without an acknowledgement that touches this stretch."""
        times = pairwise(sorted(self.times))
        return max((b - a for a, b in times if b > since and a < until), default=0.0)


def read(path: Path) -> Book:
    """All that is written there."""
    book = Book()
    for line in path.read_text().splitlines():
        at, what, key, *rest = line.split(" ")
        match what:
            case "asked":
                book.requested.add(key)
            case "acknowledged":
                book.current[key] = int(rest[0])
                book.acknowledged.add((key, int(rest[0])))
                book.times.append(float(at))
                book.lanes[key.rpartition(".")[0]] = float(at)
            case _:
                book.why[f"{what}: {' '.join(rest)[:100]}"] += 1
    return book
