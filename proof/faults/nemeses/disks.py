"""A disk that is full under the server."""

from __future__ import annotations

from typing import TYPE_CHECKING

import psycopg

from proof.faults.jobs import LEASE
from proof.faults.nemeses.base import Nemesis

if TYPE_CHECKING:
    from proof.faults.harness import Bed
    from support.disk import Disk

# Too much to be sorted in memory: it goes to a file.
_WRITE = """
SELECT count(*) FROM (
    SELECT n FROM generate_series(1, 200000) AS n ORDER BY random() OFFSET 0
) AS sorted
"""


class DiskFull(Nemesis):
    """Nothing can be written any more; the server may end by it. Then there is room again."""

    name = "disk full"
    _refused: bool

    def __init__(self, disk: Disk) -> None:
        self._disk = disk

    def strike(self, bed: Bed) -> float | None:
        self._refused = False
        try:
            # It can, as yet; and the directory for such files is there.
            bed.rows(_WRITE)
        except psycopg.OperationalError:
            return None
        self._disk.fill()
        return bed.rng.uniform(0.5 * LEASE, LEASE)

    def look(self, bed: Bed) -> bool:
        if not self._refused:
            try:
                bed.rows(_WRITE)
            except psycopg.errors.DiskFull:
                self._refused = True
        return False

    def relieve(self, bed: Bed) -> int:
        self._disk.free()
        # A server that could not write its log has ended; its supervisor starts it again.
        if not bed.cluster.alive:
            bed.cluster.kill()
            bed.cluster.start()
        return int(self._refused)
