"""Type the README as a new user does: from the install to the first result and a killed worker.

The commands are read from the page, and the cost of each is measured. Run by `just test-readme`. It
builds the wheel, creates a virtual environment, and installs from the index that pip is set to.
Where the page installs from the checkout, the wheel is installed instead.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import venv
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from support.processes import die_with_parent, wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parent.parent
FIRST_RESULT = ("Install", "Quickstart")
CRASH = "Kill a worker"
FROM_CHECKOUT, FROM_WHEEL = 'pip install ".[', 'pip install "tenure['
MOST_COMMANDS = 5
MOST_SECONDS = 60.0
PATIENCE = 300.0
READY = "Press Ctrl-C to stop"
STEERED_BY = ("TENURE_", "DATABASE_URL", "PG", "PYTHON", "VIRTUAL_ENV")
_BLOCK = re.compile(r"^```sh\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.DOTALL | re.MULTILINE)


class Typed(NamedTuple):
    """One command as the page shows it, and the output that the page shows."""

    line: str
    prints: str | None


class Cost(NamedTuple):
    """The processor time and the wall time of a command, in seconds."""

    machine: float
    wall: float


def commands(*titles: str) -> Iterator[Typed]:
    """Yield the commands of these sections of the README, in order."""
    page = (ROOT / "README.md").read_text()
    for title in titles:
        section = page.partition(f"\n## {title}\n")[2].partition("\n## ")[0]
        for block, prints in _BLOCK.findall(section):
            # The output of a block comes from its first Python command.
            lines = block.splitlines()
            printing = next((line for line in lines if line.startswith("python")), lines[-1])
            for line in lines:
                yield Typed(line, prints if prints and line == printing else None)


class User:
    """A new user with an empty directory, a fresh virtual environment and two terminals."""

    def __init__(self, home: Path) -> None:
        self._directory = home / "project"
        self._directory.mkdir()
        self._log = home / "dev.log"
        self._dev: subprocess.Popen[bytes] | None = None
        venv.create(home / "venv", with_pip=True)
        plain = {k: v for k, v in os.environ.items() if not k.startswith(STEERED_BY)}
        self._environment = plain | {
            "PATH": f"{home / 'venv' / 'bin'}:{os.environ['PATH']}",
            "PIP_CONSTRAINT": str(_wheel(home)),
            "PIP_FIND_LINKS": str(home),
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
            "TENURE_RUN_DIR": str(home / "run"),
        }

    def types(self, typed: Typed) -> Cost:
        """Run one line. Exit if it fails, or if it prints something else than the page shows."""
        started = time.monotonic()
        line = typed.line.replace(FROM_CHECKOUT, FROM_WHEEL)
        if typed.line.startswith("tenure dev"):
            self._start(typed.line)
            return Cost(0.0, time.monotonic() - started)
        process = subprocess.Popen(
            ["/bin/bash", "-c", line],
            cwd=self._directory,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            preexec_fn=die_with_parent(signal.SIGKILL),  # noqa: PLW1509 - it takes no lock
        )
        if process.stdout is None:
            raise AssertionError("the process has no pipe")
        printed = process.stdout.read()
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            raise SystemExit(f"$ {typed.line}\n{printed}\n`tenure dev` printed:\n{self.output()}")
        if typed.prints is not None and printed != typed.prints:
            raise SystemExit(f"$ {typed.line}\nprinted {printed!r}, not {typed.prints!r}")
        if typed.line.startswith("kill -9") and self._dev is not None:
            self._dev.wait(PATIENCE)
        return Cost(used.ru_utime + used.ru_stime, time.monotonic() - started)

    def _start(self, line: str) -> None:
        with self._log.open("wb") as log:
            self._dev = subprocess.Popen(
                ["/bin/bash", "-c", f"exec {line}"],
                cwd=self._directory,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                preexec_fn=die_with_parent(signal.SIGKILL),  # noqa: PLW1509 - it takes no lock
            )
        if not wait_for(lambda: READY in self.output(), PATIENCE):
            raise SystemExit(f"$ {line}\n{self.output()}")

    def output(self) -> str:
        """Return what `tenure dev` has printed so far."""
        return self._log.read_text() if self._log.exists() else ""

    def in_the_background(self) -> float:
        """Return the processor time of `tenure dev` and its children so far."""
        return _used_by(self._dev.pid) if self._dev is not None else 0.0

    def presses_ctrl_c(self) -> None:
        """Stop `tenure dev`. Exit if it fails, or if a process of it keeps running."""
        if self._dev is None:
            return
        family = _family(self._dev.pid)
        self._dev.send_signal(signal.SIGINT)
        code = self._dev.wait(PATIENCE)
        if code != 0 or "Traceback" in self.output():
            raise SystemExit(f"`tenure dev` ended with {code}:\n{self.output()}")
        if not wait_for(lambda: not any(Path(f"/proc/{pid}").exists() for pid in family), 10):
            raise SystemExit(f"one of the processes {family} is still running")

    def leaves(self) -> None:
        """Kill `tenure dev` if it still runs."""
        if self._dev is not None:
            self._dev.kill()
            self._dev.wait()


def _wheel(home: Path) -> Path:
    """Build the wheel into `home`, and return a constraints file that pins `tenure` to it."""
    subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", home, ROOT],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    [wheel] = home.glob("*.whl")
    file = home / "constraints.txt"
    file.write_text(f"tenure=={wheel.name.split('-')[1]}\n")
    return file


def _stat(pid: int) -> tuple[int, float]:
    """Return a process's parent, and the processor time of it and its ended children."""
    # The name is in parentheses and may contain spaces. The fields after it do not.
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[1]), sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def _family(root: int) -> list[int]:
    parents: dict[int, int] = {}
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            parents[int(entry.name)] = _stat(int(entry.name))[0]
    family = [root]
    for pid in family:
        family += [child for child, parent in parents.items() if parent == pid]
    return family


def _used_by(root: int) -> float:
    used = 0.0
    for pid in _family(root):
        with suppress(OSError):
            used += _stat(pid)[1]
    return used


def _show(line: str, cost: Cost) -> None:
    print(f"{cost.machine:6.2f} s {cost.wall:7.2f} s  {line}")


def main() -> None:
    """Type the page and print the costs. Exit with 1 if they exceed the limits."""
    home = Path(tempfile.mkdtemp(prefix="tenure-first-"))
    # If root runs this, the private server belongs to another user, who needs access.
    home.chmod(0o755)
    print("machine      wall  command")
    try:
        user = User(home)
        try:
            _type_all(user)
            user.presses_ctrl_c()
        finally:
            user.leaves()
    finally:
        shutil.rmtree(home, ignore_errors=True)


def _type_all(user: User) -> None:
    total, count = 0.0, 0
    for typed in commands(*FIRST_RESULT):
        cost = user.types(typed)
        _show(typed.line, cost)
        total += cost.machine
        count += 1
    background = user.in_the_background()
    print(f"{background:6.2f} s            of it in the background")
    total += background
    print(f"first result after {count} commands and {total:.1f} s of machine time")
    for typed in commands(CRASH):
        _show(typed.line, user.types(typed))
    if count > MOST_COMMANDS or total > MOST_SECONDS:
        raise SystemExit(f"the limits are {MOST_COMMANDS} commands and {MOST_SECONDS:g} s")


if __name__ == "__main__":
    main()
