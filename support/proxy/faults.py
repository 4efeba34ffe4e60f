"""What is wrong with the way at present, and what has been done to connections so far."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from support.proxy.wire import is_commit, is_request

if TYPE_CHECKING:
    from random import Random

Towards = Literal["client", "server"]


@dataclass
class Cut:
    """An order to cut connections whose answer is on its way, until `left` of them were."""

    kind: str
    left: int
    share: float
    commits: bool
    containing: bytes = b""

    def fits(self, data: bytes) -> bool:
        if self.commits:
            return is_commit(data)
        return is_request(data) and self.containing in data


@dataclass
class Faults:
    """In force for every connection of a proxy; all of it belongs to the proxy's thread."""

    rng: Random
    is_cut: bool = False
    only: Towards | None = None
    delay: float = 0.0
    jitter: float = 0.0
    rate: float | None = None
    cuts: list[Cut] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)

    @property
    def holds_up(self) -> bool:
        return self.delay > 0 or self.jitter > 0 or self.rate is not None

    def due(self, now: float, before: float, size: int) -> float:
        """When this much may be written, if what was read before it is due at `before`."""
        arrived = now + self.delay + self.rng.uniform(0, self.jitter)
        spent = size / self.rate if self.rate else 0.0
        return max(arrived, before) + spent

    def strike(self, data: bytes) -> Cut | None:
        """The order that this request falls to, if any; it is then one less to do."""
        for cut in self.cuts:
            if cut.fits(data) and self.rng.random() < cut.share:
                cut.left -= 1
                if not cut.left:
                    self.cuts.remove(cut)
                return cut
        return None

    def restore(self) -> None:
        """Nothing is wrong any more; what was counted stays."""
        self.is_cut, self.only = False, None
        self.delay, self.jitter, self.rate = 0.0, 0.0, None
        self.cuts.clear()
