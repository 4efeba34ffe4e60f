"""The terminal of `tenure top`: raw mode, keys, the loop."""

import contextlib
import os
import re
import select
import signal
import sys
import termios
import time
import tty
from collections.abc import Iterator
from types import FrameType
from typing import TYPE_CHECKING

from tenure.cli.errors import Exit
from tenure.cli.top.data import DataThread
from tenure.cli.top.frame import frame
from tenure.cli.top.state import Quit, TopState

if TYPE_CHECKING:
    from rich.live import Live


_NAMED = {
    "\x1b[A": "up",
    "\x1b[B": "down",
    "\x1bOA": "up",
    "\x1bOB": "down",
    "\x1b": "escape",
    "\r": "enter",
    "\n": "enter",
    "\x7f": "backspace",
    "\x08": "backspace",
}
# A key with a name of several signs, or any one sign.
_KEY = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1bO.|.", re.DOTALL)
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class KeyReader:
    """What is pressed, and what else wakes the loop: other threads, signals, a new size."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._woken, self._waker = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self.ended: bool = False

    def wake(self) -> None:
        """Let `wait` return; from any thread."""
        with contextlib.suppress(BlockingIOError, OSError):
            os.write(self._waker, b".")

    def end(self, _number: int, _frame: FrameType | None) -> None:
        """A signal that ends it; the loop sees it at once."""
        self.ended = True
        self.wake()

    def resized(self, _number: int, _frame: FrameType | None) -> None:
        """The terminal has another size."""
        self.wake()

    def wait(self, seconds: float) -> list[str]:
        """The keys pressed by then; none, if something else woke or the time is up."""
        ready, _, _ = select.select([self._descriptor, self._woken], [], [], max(0.0, seconds))
        if self._woken in ready:
            os.read(self._woken, 4096)
        if self._descriptor not in ready:
            return []
        pressed = os.read(self._descriptor, 1024)
        if not pressed:  # The terminal is gone.
            self.ended = True
        return decoded(pressed)

    def close(self) -> None:
        """Give the pipe back."""
        os.close(self._woken)
        os.close(self._waker)


def decoded(pressed: bytes) -> list[str]:
    """The keys in what a terminal sent: names for some, signs for the rest. What means nothing
    here is left out."""
    parts = _KEY.findall(pressed.decode(errors="replace"))
    keys = [_NAMED.get(part, part) for part in parts]
    return [key for key in keys if not key.startswith("\x1b")]


@contextlib.contextmanager
def keys() -> Iterator[KeyReader]:
    """Read keys one by one, without their echo; signals end it, and the terminal is given back."""
    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    reader = KeyReader(descriptor)
    handlers = {number: signal.signal(number, reader.end) for number in _SIGNALS}
    handlers[signal.SIGWINCH] = signal.signal(signal.SIGWINCH, reader.resized)
    try:
        tty.setcbreak(descriptor)
        mode = termios.tcgetattr(descriptor)
        mode[6][termios.VSUSP] = b"\x00"  # A Ctrl-Z would leave the shell on our screen.
        termios.tcsetattr(descriptor, termios.TCSANOW, mode)
        yield reader
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)
        for number, handler in handlers.items():
            signal.signal(number, handler)
        reader.close()


# Times move on between two answers.
_TICK = 1.0
# So long after an answer should have come it is said that none came.
_LATE = 3.0


def watch(url: str | None, schema: str | None, *, interval: float, who: str | None) -> Exit:
    """Show it until q or a signal."""
    from rich.console import Console
    from rich.live import Live

    from tenure import _settings
    from tenure.app import Tenure

    url = _settings.database_url(url)
    asker = DataThread(
        Tenure(url, schema=schema, redis="", pool_size=1), url, interval=interval, who=who
    )
    for name in ("COLUMNS", "LINES"):
        # What a shell has exported does not change with the terminal's size.
        os.environ.pop(name, None)
    console = Console(highlight=False)
    with (
        keys() as pressed,
        Live(console=console, screen=True, auto_refresh=False, transient=True) as live,
    ):
        asker.start(pressed.wake)
        code = _loop(asker, pressed, live, interval)
    asker.stop()
    return code


def _loop(asker: DataThread, pressed: KeyReader, live: "Live", interval: float) -> Exit:
    view = TopState()
    while not pressed.ended:
        _draw(asker, view, live, interval)
        for key in pressed.wait(_TICK):
            match view.press(key):
                case None:
                    pass
                case Quit():
                    return Exit.DONE
                case wish:
                    view.said = "…"
                    asker.wish(wish)
    return Exit.INTERRUPTED


def _draw(asker: DataThread, view: TopState, live: "Live", interval: float) -> None:
    from rich.console import Group

    if asker.said is not None:
        view.said, asker.said = asker.said, None
    if asker.opened is not None:
        view.opened, asker.opened, view.said = asker.opened, None, ""
    size = live.console.size
    lines = frame(
        asker.overview,
        view,
        width=size.width,
        height=size.height,
        state=_state(asker, interval),
    )
    live.update(Group(*lines), refresh=True)


def _state(asker: DataThread, interval: float) -> str:
    """How fresh it is."""
    age = time.monotonic() - asker.answered_at
    if asker.trouble:
        trouble = asker.trouble
        return f"{trouble.what}, for {age:.0f} s: {trouble.why}; {trouble.todo}"
    if asker.overview is None:
        return "looking…"
    if age > interval + _LATE:
        return f"no answer for {age:.0f} s"
    return f"every {interval:g} s"
