"""The log of a worker's processes: never waited for, and what is dropped is counted."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import time
from typing import TYPE_CHECKING

import pytest

from tests.timing import median

if TYPE_CHECKING:
    from collections.abc import Iterator

BEGIN = """
import logging, os, sys, threading, time
from tenure import _log
from tenure._services.base import log
from tenure.worker.log_format import configure_logging
configure_logging("info")
theirs = logging.getLogger("theirs")
def say(text):
    print(text, flush=True)
"""


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    """A pipe that is not read before the test does."""
    ends = os.pipe()
    yield ends
    for end in ends:
        os.close(end)


def run(program: str, stderr: int = subprocess.PIPE) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", BEGIN + textwrap.dedent(program)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=stderr,
        text=True,
    )


def reported(program: str) -> str:
    """What a program that ends by itself writes to stderr."""
    process = run(program)
    _, answer = process.communicate(timeout=30)
    assert process.returncode == 0, answer
    return answer


def test_lines_come_in_their_order_and_all_of_them_before_the_end() -> None:
    lines = reported(
        """
        for n in range(3000):
            (log.info if n % 3 else theirs.info)("line %d", n)
        """
    ).splitlines()
    assert [line.rpartition(" ")[2] for line in lines] == [str(n) for n in range(3000)]


def test_unread_log_blocks_no_thread_and_drops_are_counted(
    pipe: tuple[int, int],
) -> None:
    read_end, write_end = pipe
    program = """
        began = time.monotonic()
        for n in range(20_000):
            theirs.info("theirs %s", "x" * 1000)
        for n in range(100):
            log.error("ours")
        say(f"{time.monotonic() - began:.1f}")
        sys.stdin.readline()
        log.info("the last one")
        _log.flush(10)
        os._exit(0)
        """
    with run(program, write_end) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        assert float(process.stdout.readline()) < 15
        os.set_blocking(read_end, False)
        answer = b""
        until = time.monotonic() + 30
        process.stdin.write("\n")
        process.stdin.flush()
        while time.monotonic() < until and b"the last one" not in answer:
            try:
                answer += os.read(read_end, 1 << 20)
            except BlockingIOError:
                time.sleep(0.01)
        assert process.wait(20) == 0
    dropped = [line for line in answer.splitlines() if b"records dropped" in line]
    written = answer.count(b"theirs x")
    assert sum(int(line.split()[3]) for line in dropped) == 20_000 - written
    assert written > 5000
    assert answer.count(b"ERROR ours") == 100, "Tenure's own lines have room of their own"


@pytest.mark.timing
def test_a_process_ends_though_its_log_is_not_read(pipe: tuple[int, int]) -> None:
    program = """
        for n in range(1000):
            theirs.info("x" * 1000)
        began = time.monotonic()
        _log.shut_down(1.0)
        say(f"{time.monotonic() - began:.1f}")
        sys.exit(7)
        """

    def end() -> float:
        with run(program, pipe[1]) as process:
            assert process.stdout is not None
            took = float(process.stdout.readline())
            assert process.wait(10) == 7
        return took

    assert median(end) <= 1.2


def test_own_records_reach_handlers_that_the_user_installed() -> None:
    """With the fields that a record of Tenure's has, and those that a factory adds."""
    answer = reported(
        """
        old = logging.getLogRecordFactory()
        def factory(*args, **kwargs):
            record = old(*args, **kwargs)
            record.request = "r7"
            return record
        logging.setLogRecordFactory(factory)
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("user: %(request)s %(job)s %(lineno)d %(message)s"))
        logging.getLogger("tenure").addHandler(handler)
        log.warning("job %d", 5, extra={"job": 5})
        _log.shut_down(2.0)
        """
    )
    assert "user: r7 5 " in answer
    assert answer.count("job 5") == 2


def test_a_level_a_filter_and_a_disabled_logger_hold() -> None:
    output = reported(
        """
        log.debug("debug")
        logging.getLogger("tenure").setLevel("ERROR")
        log.warning("warning")
        logging.getLogger("tenure").addFilter(lambda record: "keep" in record.msg)
        log.error("keep this")
        log.error("drop this")
        _log.shut_down(2.0)
        logging.getLogger("tenure").disabled = True
        log.error("keep nothing")
        """
    )
    assert [line.split(" ", 2)[2] for line in output.splitlines()] == ["ERROR keep this"]


def test_a_lock_that_is_held_in_logging_stops_no_log_call_of_ours() -> None:
    answer = reported(
        """
        handler = logging.StreamHandler()
        logging.getLogger().addHandler(handler)
        def take():
            for each in logging.getLogger().handlers:
                each.acquire()
            logging._lock.acquire()
        thread = threading.Thread(target=take); thread.start(); thread.join()
        began = time.monotonic()
        for n in range(5):
            log.warning("still there")
        assert time.monotonic() - began < 1
        _log.shut_down(0.5)
        os._exit(0)
        """
    )
    assert answer.count("still there") == 5


def test_a_copy_of_the_process_logs_too() -> None:
    """Forked by a handler, by multiprocessing: it has no thread that would write."""
    output = reported(
        """
        if not os.fork():
            theirs.info("from the copy")
            log.info("ours from the copy")
            os._exit(0)
        os.wait()
        """
    )
    assert output.count("from the copy") == 2
