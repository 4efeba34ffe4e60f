"""Children that have run enough jobs, or take too much memory, are replaced; no job notices."""

from __future__ import annotations

import re
import threading
import time
from typing import TYPE_CHECKING

import pytest

from support.processes import wait_for
from support.workers import Worker, soon
from tests.crash import guarded

if TYPE_CHECKING:
    from pathlib import Path

    from support.workers import Bed
    from tenure._model.ids import JobId
    from tests.crash.conftest import Tell

MIB = 1024 * 1024


class Watch(threading.Thread):
    """Notes which children a worker has, all the time."""

    def __init__(self, worker: Worker) -> None:
        super().__init__(daemon=True)
        self.most = 0
        self.seen: set[int] = set()
        self._worker = worker
        self._over = threading.Event()

    def run(self) -> None:
        """Look until told to end."""
        while not self._over.wait(0.02):
            now = self._worker.children
            self.most = max(self.most, len(now))
            self.seen |= now

    def end(self) -> None:
        """Look no more."""
        self._over.set()
        self.join()


def all_completed_at_once(bed: Bed, jobs: list[JobId]) -> set[object]:
    """See that each job was completed by its first attempt; the processes that ran them."""
    soon(lambda: bed.ended() == len(jobs), 90, f"only {bed.ended()} of {len(jobs)} completed")
    rows = [bed.job(job_id) for job_id in jobs]
    assert {(row.attempt, row.losses) for row in rows} == {(1, 0)}
    assert bed.endings().keys() <= {"completed", "released"}
    return {row.result for row in rows}


def test_child_is_replaced_after_its_job_limit_one_at_a_time(
    bed: Bed, tmp_path: Path, tell: Tell
) -> None:
    options = {"processes": 2, "concurrency": 2, "max-jobs": 15}
    with Worker(guarded.TARGET, bed.url, tmp_path, None, None, **options) as worker:
        soon(lambda: len(worker.children) == 2, 20, "no children")
        watch = Watch(worker)
        watch.start()
        jobs = bed.enqueue(guarded.tick.bind(0.15) for _ in range(150))
        ran = all_completed_at_once(bed, jobs)
        watch.end()
        output = re.findall(r"child (\d+) has run (\d+) jobs, replacing it", worker.log())
        tell(f"150 jobs ran in {len(ran)} processes, {len(output)} replaced")
        assert len(output) >= 2
        assert all(int(jobs) >= 15 for _, jobs in output)
        assert len(ran) >= 3
        # Two that work, one that loads or drains: never two at a time.
        assert watch.most == 3
        assert "crashed" not in worker.log()


def test_a_child_that_takes_too_much_memory_is_replaced(
    bed: Bed, tmp_path: Path, tell: Tell
) -> None:
    options = {"concurrency": 2, "max-memory": "160MiB", "metrics-port": 0}
    with Worker(guarded.TARGET, bed.url, tmp_path, None, None, **options) as worker:
        jobs: list[JobId] = []
        for turn in range(1, 5):
            jobs += bed.enqueue(guarded.keep_memory.bind(20 * MIB) for _ in range(4))
            assert wait_for(lambda turn=turn: bed.ended() == 4 * turn, 30)  # type: ignore[misc]
            time.sleep(1.5)
        ran = all_completed_at_once(bed, jobs)
        output = re.findall(r"uses (\d+) MiB of memory, replacing it", worker.log())
        tell(f"16 leaks of 20 MiB ran in {len(ran)} processes; replaced at {output} MiB")
        assert output
        assert len(ran) >= 2
        assert wait_for(lambda: len(worker.children) == 1, 20)


def test_a_process_with_a_limit_of_memory_raises_and_its_neighbours_notice_nothing(
    bed: Bed, tmp_path: Path
) -> None:
    with Worker(guarded.TARGET, bed.url, tmp_path, None) as worker:
        [neighbour] = bed.enqueue([guarded.nap.bind(bed.path("nap"), 3.0)])
        sizes = [20 * MIB, 400 * MIB, 20 * MIB]
        jobs = bed.enqueue(guarded.take_memory.bind(size) for size in sizes)
        for job_id in [*jobs, neighbour]:
            soon(lambda job_id=job_id: not bed.job(job_id).state.is_live, 30, "not all ended")  # type: ignore[misc]
        states = [bed.job(job_id).state for job_id in jobs]
        assert states == ["completed", "failed", "completed"]
        [attempt] = bed.attempts(jobs[1])
        assert (attempt.outcome, attempt.error_type) == ("failed", "MemoryError")
        assert bed.job(neighbour).state == "completed"
        assert len(worker.children) == 1


@pytest.mark.parametrize("size", ["much", "0", "-1MiB", "1TiB"])
def test_invalid_size_is_refused(bed: Bed, tmp_path: Path, size: str) -> None:
    options = {"max-memory": size}
    with Worker(guarded.TARGET, bed.url, tmp_path, None, None, **options) as worker:
        assert worker.wait(20) != 0
        assert "max_memory must be a memory size" in worker.log()
