"""Keys from the terminal, one by one, and the terminal as it was when that is over."""

import contextlib
import os
import re
import select
import signal
import sys
import termios
import tty
from collections.abc import Iterator
from types import FrameType

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


class Keys:
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
def keys() -> Iterator[Keys]:
    """Read keys one by one, without their echo; signals end it, and the terminal is given back."""
    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    reader = Keys(descriptor)
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
