"""Leaving early, by the way on which everything is ended: mounts, groups, networks, servers and
processes of a proof go by its `with` and `finally`, and these want to be reached, once."""

from __future__ import annotations

import signal
import subprocess
from typing import TYPE_CHECKING

from support.binaries import ROOT
from support.processes import die_with_parent

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

_REQUESTS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_END_WITHIN = 60.0


def leave_on_signal() -> None:
    """Leave by SystemExit at the first of these signals. Those that follow would cut short what is
    being ended, and are not handled. A process that ignores one (nohup) keeps ignoring it."""
    for request in _REQUESTS:
        if signal.getsignal(request) is not signal.SIG_IGN:
            signal.signal(request, _leave)


def _leave(number: int, _frame: object) -> None:
    for request in _REQUESTS:
        # Not SIG_IGN: the programs by which we clean up would inherit that.
        signal.signal(request, lambda *_: None)
    raise SystemExit(128 + number)


def run(
    command: Sequence[str],
    *,
    by: signal.Signals = signal.SIGTERM,
    environment: Mapping[str, str] | None = None,
    within: float = _END_WITHIN,
) -> int:
    """Run a program that cleans up after itself on this signal; return its exit code. A caller that
    leaves meanwhile, for whatever reason, ends the program first."""
    process = subprocess.Popen(  # noqa: S603 - ourselves, or our own tests
        command,
        cwd=ROOT,
        env=environment,
        # Ctrl-C reaches us alone, so that the program is told once and by us.
        start_new_session=True,
        preexec_fn=_hearing(by),  # noqa: PLW1509 - it takes no lock
    )
    try:
        return process.wait()
    finally:
        end(process, by=by, within=within)


def _hearing(request: signal.Signals) -> Callable[[], None]:
    """A `preexec_fn`: the program hears the signal, which a shell may have us ignore, and gets it
    also when we are killed."""
    die = die_with_parent(request)

    def before_exec() -> None:
        signal.signal(request, signal.SIG_DFL)
        die()

    return before_exec


def end(
    process: subprocess.Popen[bytes],
    *,
    by: signal.Signals = signal.SIGTERM,
    within: float = _END_WITHIN,
) -> None:
    """Tell it to end, and wait; SIGKILL if that takes too long."""
    process.send_signal(by)
    try:
        process.wait(within)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
