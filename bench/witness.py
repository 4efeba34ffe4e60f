"""A process that only sleeps, beside what is measured: what keeps it waiting is the machine.

`python -m bench.witness` prints an instant and a wait whenever a sleep of 5 ms took 50 ms more.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from support.processes import die_with_parent

if TYPE_CHECKING:
    from collections.abc import Iterator

NAP, STALL = 0.005, 0.050


class Stalls:
    """The periods in which the machine ran no process that was due: from, to."""

    def __init__(self) -> None:
        self.spans: list[tuple[float, float]] = []

    @property
    def worst(self) -> float:
        """The longest of them, in seconds."""
        return max((end - begin for begin, end in self.spans), default=0.0)

    def during(self, begin: float, end: float) -> bool:
        """Whether one of them reached into this time."""
        return any(first < end and last > begin for first, last in self.spans)


@contextmanager
def witness() -> Iterator[Stalls]:
    """Stalls of the machine while the block lasts; filled in at its end."""
    stalls = Stalls()
    with tempfile.NamedTemporaryFile(prefix="tenure-witness-") as file:
        process = subprocess.Popen(
            [sys.executable, "-m", "bench.witness"],
            stdout=file,
            preexec_fn=die_with_parent(),  # noqa: PLW1509 - it takes no lock
        )
        try:
            yield stalls
        finally:
            process.terminate()
            process.wait()
            for line in Path(file.name).read_text().splitlines():
                begin, wait = map(float, line.split())
                stalls.spans.append((begin, begin + wait))


def main() -> None:
    """Sleep, until ended."""
    while True:
        began = time.time()
        time.sleep(NAP)
        took = time.time() - began
        if took - NAP > STALL:
            sys.stdout.write(f"{began} {took}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
