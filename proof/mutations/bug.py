"""What a seeded bug is: what it changes, which rule it breaks, and which run must notice it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


@dataclass(frozen=True)
class Edit:
    """One change to one statement's text; the old text must be there."""

    statement: str
    old: str
    new: str


@dataclass(frozen=True)
class Run:
    """A run of the bed: the words of `just prove`, and the report that it writes to .cache/proof.
    A subject that does not name invariants has `figures`: which of its figures are one's. A run
    without a report is a suite of pytest, and has no seed.
    """

    name: str
    words: tuple[str, ...]
    report: str = ""
    figures: Mapping[str, tuple[str, ...]] = field(default_factory=dict, hash=False)
    seed: int = 7

    def __str__(self) -> str:
        words = (*self.words, "--seed", str(self.seed)) if self.report else self.words
        return " ".join(f'"{word}"' if " " in word else word for word in words)

    def by(self, seed: int) -> Run:
        """The same by another seed, which names another report."""
        return replace(self, seed=seed)


@dataclass(frozen=True)
class Bug:
    """A plausible mistake. `breaks` is the rule it forgets, `run` the run that misses a bar of the
    `invariant`, `caught_by` a suite that fails within seconds, where there is one."""

    name: str
    breaks: str
    run: Run
    invariant: str
    edits: tuple[Edit, ...] = ()
    patch: Callable[[], None] | None = None
    caught_by: str | None = None
