"""`python -m bench.compare COMMIT [--rounds N] [--jobs N]`: what a job costs now and at a commit.

Both versions of the code drain no-op jobs on one private server, in turns. The bar is the ratio of
the processor time of worker and database together.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from bench.server import server
from bench.speed.contender import Contender
from bench.speed.drain import drain
from bench.speed.field import Entry

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bench.speed.drain import Round

BAR = 1.02
_ROOT = Path(__file__).parent.parent


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.compare", description=__doc__)
    parser.add_argument("commit", help="the code to compare with")
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--jobs", type=int, default=20_000)
    options = parser.parse_args()
    with _checkout(options.commit) as before, server() as running:
        entries = {"before": _entry(before, "before"), "now": _entry(_ROOT, "now")}
        rounds: dict[str, list[Round]] = {"before": [], "now": []}
        for number in range(options.rounds):
            for name in sorted(entries, reverse=bool(number % 2)):
                result = drain(entries[name], running, None, options.jobs)
                rounds[name].append(result)
                print(
                    f"{number} {name:6} worker {result.worker_us:5.1f} µs, database "
                    f"{result.database_us:5.1f} µs, {result.rate:.0f} jobs/s",
                    flush=True,
                )
    ratios = [
        _cost(now) / _cost(before)
        for before, now in zip(rounds["before"], rounds["now"], strict=True)
    ]
    for name, results in rounds.items():
        costs = [_cost(result) for result in results]
        print(f"{name}: median {statistics.median(costs):.1f} µs, least {min(costs):.1f} µs")
    ratio = statistics.median(ratios)
    print(f"median of {len(ratios)} ratios: {ratio:.3f} (bar: {BAR})")
    return int(ratio > BAR)


def _cost(result: Round) -> float:
    return result.worker_us + result.database_us


def _entry(root: Path, name: str) -> Entry:
    """The program of this tree, with its own bench and its own package."""
    command = ["env", "-C", str(root), sys.executable, "-m", "bench.speed.ours"]
    environment = {"PYTHONPATH": str(root / "src"), "BENCH_TASK": "noop"}
    left = "SELECT EXISTS (SELECT FROM tenure.job)"
    return Entry(name, _Named(name, command, environment, left=left))


class _Named(Contender):
    """Each version installs its own schema, so each has its own template."""

    @property
    def _template(self) -> str:
        return f"compare_{self.name}"


@contextmanager
def _checkout(commit: str) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="tenure-compare-") as directory:
        git = ["git", "archive", commit]
        archive = subprocess.run(git, cwd=_ROOT, check=True, capture_output=True)
        tar = ["tar", "-x", "-C", directory]
        subprocess.run(tar, input=archive.stdout, check=True)
        yield Path(directory)


if __name__ == "__main__":
    sys.exit(main())
