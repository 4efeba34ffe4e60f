"""A real terminal without a person: tmux, on a socket of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Self

from support.processes import wait_for

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from types import TracebackType


class TmuxNotFoundError(Exception):
    """tmux is not installed; the message says what to run."""


class Terminal:
    """One window of this size, in which a shell runs a command and then says how it ended."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        width: int,
        height: int,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        program = shutil.which("tmux")
        if program is None:
            raise TmuxNotFoundError("no tmux; run: apt-get install tmux")
        self._directory = Path(tempfile.mkdtemp(prefix="tenure-tmux-"))
        self._tmux = [program, "-u", "-f", "/dev/null", "-S", str(self._directory / "socket")]
        self.width, self.height = width, height
        self._environment = {**os.environ, "LC_ALL": "C.UTF-8", **(environment or {})}
        # The modes of the terminal before and after; the process's id, for signals.
        script = (
            'stty -g >"$0/before"; "$@" & echo $! >"$0/pid"; fg >/dev/null; '
            'echo $? >"$0/code"; stty -g >"$0/after"; exec sleep 1000'
        )
        self._call(
            *("new-session", "-d", "-x", str(width), "-y", str(height)),
            *("bash", "-mc", script, str(self._directory), *command),
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._call("kill-server")
        shutil.rmtree(self._directory, ignore_errors=True)

    @property
    def screen(self) -> list[str]:
        """What is to be seen, line by line."""
        return self._call("capture-pane", "-p").splitlines()

    @property
    def painted(self) -> str:
        """The same with the signs that colour it."""
        return self._call("capture-pane", "-p", "-e")

    def press(self, *keys: str) -> None:
        """Press keys, by tmux's names for them."""
        self._call("send-keys", *keys)

    def type(self, text: str) -> None:
        """Type this text."""
        self._call("send-keys", "-l", text)

    def resize(self, width: int, height: int) -> None:
        """Give the window another size."""
        self._call("resize-window", "-x", str(width), "-y", str(height))

    def until(self, seen: Callable[[str], bool], within: float = 20.0) -> str:
        """The screen once it looks like this."""
        shown = ""

        def looked() -> bool:
            nonlocal shown
            shown = "\n".join(self.screen)
            return seen(shown)

        assert wait_for(looked, within), shown  # noqa: S101 - a test's own
        return shown

    def shows(self, text: str) -> str:
        """The screen once it has this text."""
        return self.until(lambda shown: text in shown)

    def signal(self, number: int) -> None:
        """Send a signal to the command."""
        os.kill(int((self._directory / "pid").read_text()), number)

    def ended(self) -> int:
        """The exit code, once the command has ended and the terminal's modes were read."""
        after = self._directory / "after"
        assert wait_for(lambda: after.exists() and bool(after.read_text()), 20)  # noqa: S101
        return int((self._directory / "code").read_text())

    @property
    def restored(self) -> bool:
        """Whether the modes, the screen and the cursor are as they were before."""
        modes = (self._directory / "before").read_text(), (self._directory / "after").read_text()
        flags = self._call("display-message", "-p", "#{alternate_on} #{cursor_flag}").split()
        return modes[0] == modes[1] and flags == ["0", "1"]

    def _call(self, *words: str) -> str:
        done = subprocess.run(
            [*self._tmux, *words],
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=20,
            check=True,
        )
        return done.stdout
