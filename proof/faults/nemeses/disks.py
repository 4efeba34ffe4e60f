"""A disk that is full under the server."""

from __future__ import annotations

from typing import TYPE_CHECKING

from proof.faults.jobs import LEASE
from proof.faults.nemeses.base import Nemesis

if TYPE_CHECKING:
    from proof.faults.bed import Bed
    from support.disk import Disk


class DiskFull(Nemesis):
    """Nothing can be written any more; the server may end by it. Then there is room again."""

    name = "disk full"

    def __init__(self, disk: Disk) -> None:
        self._disk = disk

    def strike(self, bed: Bed) -> float | None:
        self._disk.fill()
        return bed.rng.uniform(0.5 * LEASE, LEASE)

    def relieve(self, bed: Bed) -> int:
        self._disk.free()
        # A server that could not write its log has ended; whoever supervises starts it again.
        if not bed.cluster.alive:
            bed.cluster.kill()
            bed.cluster.start()
        return 1
