"""A worker that does an operation is killed twice; each item is done exactly once."""

from __future__ import annotations

from proof import operations


def test_an_operation_whose_worker_dies_twice_does_each_job_once() -> None:
    """`just prove operations` has 200,000 dead letters. Shows R15, R36."""
    assert operations.prove(count=16_000).missed == []
