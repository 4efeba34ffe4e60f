"""The producer from outside: started in a process of its own, and what it wrote down."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
from typing import TYPE_CHECKING

from support.processes import die_with_parent

if TYPE_CHECKING:
    from pathlib import Path

    from bench.speed.contender import Place

SENT = struct.Struct("=qqdd")  # Number, id, and the instants before and after what commits.


def sent(place: Place) -> Path:
    """Where it writes."""
    return place.directory / "sent"


def produce(place: Place, *words: object) -> subprocess.Popen[bytes]:
    """Start it. What was sent and stamped before is forgotten."""
    sent(place).write_bytes(b"")
    (place.directory / "stamps").write_bytes(b"")
    environment = {
        "BENCH_URL": place.url,
        "BENCH_SENT": str(sent(place)),
        "BENCH_COUNTS": str(place.directory / "counts"),
        "BENCH_STAMPS": str(place.directory / "stamps"),
    }
    return subprocess.Popen(
        [sys.executable, "-m", "bench.speed.producer", *map(str, words)],
        env=os.environ | environment,
        preexec_fn=die_with_parent(),  # noqa: PLW1509 - it takes no lock
    )


def produced(place: Place, process: subprocess.Popen[bytes], within: float) -> dict[int, float]:
    """When each number was enqueued, once it has ended."""
    try:
        code = process.wait(within)
    finally:
        process.kill()
    assert code == 0, f"the producer ended with {code}"
    return {number: at for number, _, at, _ in SENT.iter_unpack(sent(place).read_bytes())}


def answers(place: Place) -> list[tuple[float, float]]:
    """From when to when each call that commits took."""
    return [(at, end) for _, _, at, end in SENT.iter_unpack(sent(place).read_bytes())]
