"""The terminal for `tenure top`: raw mode, keys, the loop."""

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
# An escape sequence, or any one character.
_KEY = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1bO.|.", re.DOTALL)
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class KeyReader:
    """Waits for keys, other threads, signals and terminal resizes."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._woken, self._waker = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self.ended: bool = False

    def wake(self) -> None:
        """Wake `wait`, from any thread."""
        with contextlib.suppress(BlockingIOError, OSError):
            os.write(self._waker, b".")

    def end(self, _number: int, _frame: FrameType | None) -> None:
        """Handle a signal: end the loop."""
        self.ended = True
        self.wake()

    def resized(self, _number: int, _frame: FrameType | None) -> None:
        """Handle a terminal resize."""
        self.wake()

    def wait(self, seconds: float) -> list[str]:
        """Return the keys pressed within this time. Empty if something else woke it."""
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
        """Close the pipe."""
        os.close(self._woken)
        os.close(self._waker)


def decoded(pressed: bytes) -> list[str]:
    """Decode the keys that a terminal sent. Unknown escape sequences are omitted."""
    parts = _KEY.findall(pressed.decode(errors="replace"))
    keys = [_NAMED.get(part, part) for part in parts]
    return [key for key in keys if not key.startswith("\x1b")]


@contextlib.contextmanager
def keys() -> Iterator[KeyReader]:
    """Read single keys without echo. Restore the terminal on exit, and after a signal."""
    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    reader = KeyReader(descriptor)
    handlers = {number: signal.signal(number, reader.end) for number in _SIGNALS}
    handlers[signal.SIGWINCH] = signal.signal(signal.SIGWINCH, reader.resized)
    try:
        tty.setcbreak(descriptor)
        mode = termios.tcgetattr(descriptor)
        mode[6][termios.VSUSP] = b"\x00"  # Ctrl-Z would leave the shell on our screen.
        termios.tcsetattr(descriptor, termios.TCSANOW, mode)
        yield reader
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)
        for number, handler in handlers.items():
            signal.signal(number, handler)
        reader.close()


# Redraw this often, so ages keep moving between responses.
_TICK = 1.0
# How late a response may be before the title mentions it.
_LATE = 3.0


def watch(url: str | None, schema: str | None, *, interval: float, actor_name: str | None) -> Exit:
    """Show the installation until `q` or a signal."""
    from rich.console import Console
    from rich.live import Live

    from tenure import _settings
    from tenure.app import Tenure

    url = _settings.database_url(url)
    data = DataThread(
        Tenure(url, schema=schema, redis="", pool_size=1),
        url,
        interval=interval,
        actor_name=actor_name,
    )
    for name in ("COLUMNS", "LINES"):
        # Exported values wouldn't follow the terminal's size.
        os.environ.pop(name, None)
    console = Console(highlight=False)
    with (
        keys() as pressed,
        Live(console=console, screen=True, auto_refresh=False, transient=True) as live,
    ):
        data.start(pressed.wake)
        code = _loop(data, pressed, live, interval)
    data.stop()
    return code


def _loop(data: DataThread, pressed: KeyReader, live: "Live", interval: float) -> Exit:
    view = TopState()
    while not pressed.ended:
        _draw(data, view, live, interval)
        for key in pressed.wait(_TICK):
            match view.press(key):
                case None:
                    pass
                case Quit():
                    return Exit.DONE
                case request:
                    view.message = "…"
                    data.request(request)
    return Exit.INTERRUPTED


def _draw(data: DataThread, view: TopState, live: "Live", interval: float) -> None:
    from rich.console import Group

    if data.message is not None:
        view.message, data.message = data.message, None
    if data.opened is not None:
        view.opened, data.opened, view.message = data.opened, None, ""
    size = live.console.size
    lines = frame(
        data.overview,
        view,
        width=size.width,
        height=size.height,
        state=_state(data, interval),
    )
    live.update(Group(*lines), refresh=True)


def _state(data: DataThread, interval: float) -> str:
    """Describe how fresh the data is."""
    age = time.monotonic() - data.answered_at
    if data.trouble:
        trouble = data.trouble
        return f"{trouble.what}, for {age:.0f} s: {trouble.why}; {trouble.todo}"
    if data.overview is None:
        return "connecting…"
    if age > interval + _LATE:
        return f"no answer for {age:.0f} s"
    return f"every {interval:g} s"
