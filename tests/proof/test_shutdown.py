"""A proof that gets a signal ends everything first: real processes, real signals."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from proof import shutdown
from support.binaries import ROOT
from support.processes import alive, send, wait_for
from support.workers import soon

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SUBJECT = "tests.proof.tidy_subject"
SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]
WITHIN = 30.0


def _hear() -> None:
    """What a shell may have had us ignore."""
    for request in SIGNALS:
        signal.signal(request, signal.SIG_DFL)


class Proving:
    """`just prove` with these words, and what its subject has done so far."""

    def __init__(self, place: Path, words: tuple[str, ...], takes: float) -> None:
        self._place = place
        self.process = subprocess.Popen(
            [sys.executable, "-m", SUBJECT, *words],
            cwd=ROOT,
            env=os.environ | {"TIDY_IN": str(place), "TIDY_TAKES": str(takes)},
            start_new_session=True,
            preexec_fn=_hear,  # noqa: PLW1509 - it takes no lock
        )

    def did(self, what: str) -> bool:
        """Whether the subject has got there."""
        return (self._place / what).exists()

    def until(self, what: str) -> None:
        """Wait until it has."""
        soon(lambda: self.did(what), WITHIN, f"the subject has not {what}")

    @property
    def subject(self) -> int:
        """The id of the process that the subject runs in."""
        return int((self._place / "pid").read_text())

    def end(self) -> None:
        """Leave nothing behind, whatever went wrong."""
        for pid in {self.process.pid, self.subject if self.did("begun") else self.process.pid}:
            send(pid, signal.SIGKILL)
        self.process.wait()


@contextmanager
def proving(place: Path, *words: str, takes: float = 0.6) -> Iterator[Proving]:
    """One that is busy. Cleaning up takes longer than subprocess itself would wait for it."""
    started = Proving(place, words, takes)
    try:
        started.until("begun")
        yield started
    finally:
        started.end()


@pytest.mark.parametrize("request_", SIGNALS)
def test_subject_cleans_up_on_sigterm(request_: signal.Signals, tmp_path: Path) -> None:
    with proving(tmp_path, "tidy") as started:
        started.process.send_signal(request_)

        assert started.process.wait(WITHIN) == 128 + request_
        assert started.did("ended")


@pytest.mark.parametrize("request_", SIGNALS)
def test_all_subjects_wait_until_the_one_that_runs_has_cleaned_up(
    request_: signal.Signals, tmp_path: Path
) -> None:
    with proving(tmp_path) as started:
        started.process.send_signal(request_)

        assert started.process.wait(WITHIN) == 128 + request_
        assert started.did("ended")
        assert not alive(started.subject)


def test_ctrl_c_reaches_all_and_the_subject_cleans_up(tmp_path: Path) -> None:
    with proving(tmp_path) as started:
        os.killpg(started.process.pid, signal.SIGINT)

        assert started.process.wait(WITHIN) == 128 + signal.SIGINT
        assert started.did("ended")


def test_a_second_signal_does_not_cut_the_clean_up_short(tmp_path: Path) -> None:
    with proving(tmp_path, "tidy") as started:
        started.process.send_signal(signal.SIGINT)
        started.until("ending")
        for request in SIGNALS:
            started.process.send_signal(request)

        assert started.process.wait(WITHIN) == 128 + signal.SIGINT
        assert started.did("ended")


def test_a_subject_cleans_up_whose_parent_was_killed(tmp_path: Path) -> None:
    with proving(tmp_path) as started:
        started.process.kill()

        started.until("ended")
        assert wait_for(lambda: not alive(started.subject), WITHIN)


def test_who_never_ends_is_killed(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "import signal; signal.signal(15, signal.SIG_IGN); input()"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, cwd=tmp_path) as stubborn:
        shutdown.end(stubborn, within=0.2)

        assert stubborn.returncode is not None
