"""Handlers that copy their process, or take the descriptors from it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from support.workers import Worker, soon
from tests.crash import guarded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from support.workers import Bed
    from tenure.task import BoundCall

KINDS: dict[str, Callable[[str], BoundCall[int]]] = {
    "on the loop": lambda path: guarded.fork_on_loop.bind(path, wait=False),
    "on the loop, waiting": lambda path: guarded.fork_on_loop.bind(path, wait=True),
    "in a thread": guarded.fork_in_thread.bind,
}


@pytest.fixture
def worker(bed: Bed, tmp_path: Path) -> Iterator[Worker]:
    with Worker(guarded.TARGET, bed.url, tmp_path, None) as worker:
        yield worker


def runs(pid: int) -> bool:
    """Whether a process is there that has not ended."""
    stat = Path(f"/proc/{pid}/stat")
    try:
        return stat.read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.parametrize("kind", KINDS)
def test_a_copy_that_comes_back_from_its_handler_ends_at_once(
    bed: Bed, worker: Worker, tmp_path: Path, kind: str
) -> None:
    """It would continue as a second child, on the same connections."""
    path = bed.path("copy")
    [job_id] = bed.enqueue([KINDS[kind](path)])
    soon(lambda: not bed.job(job_id).state.is_live, 30, "it did not end")
    soon(lambda: bool(bed.effects("copy").at), 10, "there was no copy")
    [child] = worker.children
    copy = int((tmp_path / "copy.effects").read_text().split()[1])
    soon(lambda: not runs(copy), 5, "the copy continues")
    row = bed.job(job_id)
    assert (row.state, row.result) == ("completed", child)
    # The child has its connections still, and works with them.
    bed.enqueue([guarded.nap.bind(bed.path("nap"), 0.1) for _ in range(5)])
    soon(lambda: bed.ended() == 6, 20, "nothing runs after that")
    assert worker.children == {child}
    assert "unexpected error" not in worker.log()


def test_a_child_without_descriptors_is_replaced(bed: Bed, worker: Worker) -> None:
    """It could connect no more and start no process, and what it claimed would fail."""
    [first] = bed.enqueue([guarded.fork_in_thread.bind(bed.path("first"))])
    soon(lambda: not bed.job(first).state.is_live, 30, "it did not run")
    [child] = worker.children
    bed.enqueue([guarded.take_descriptors.bind()])
    soon(lambda: "lowered the open file limit to 8" in worker.log(), 20, "it is not noticed")
    soon(lambda: worker.children != {child}, 20, "no other child came")
    soon(lambda: child not in worker.children, 30, "it did not leave")
    bed.enqueue([guarded.nap.bind(bed.path("nap"), 0.1)])
    soon(lambda: bed.ended() == 3, 30, "nothing runs after that")
