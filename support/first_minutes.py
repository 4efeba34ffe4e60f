"""The README as a new user types it: from the installed wheel to the first result, and on to the
third minute. Its commands are read from the page; what each costs is measured.

Run by `just test-readme`. It builds the wheel, makes a fresh virtual environment, and installs from
whatever index pip is set to; only the name `tenure` means the wheel.
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
MOST_COMMANDS = 5
MOST_SECONDS = 60.0
PATIENCE = 300.0
READY = "Ctrl-C ends all of it"
STEERED_BY = ("TENURE_", "DATABASE_URL", "PG", "PYTHON", "VIRTUAL_ENV")
_BLOCK = re.compile(r"^```sh\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.DOTALL | re.MULTILINE)


class Typed(NamedTuple):
    """One command as the page shows it, and what the page says it prints."""

    line: str
    prints: str | None


class Cost(NamedTuple):
    """What a command took: of the machine, and of the user's time."""

    machine: float
    wall: float


def commands(title: str) -> Iterator[Typed]:
    """The commands of one section of the README, in order."""
    text = (ROOT / "README.md").read_text().partition(f"\n## {title}\n")[2].partition("\n## ")[0]
    for shown, prints in _BLOCK.findall(text):
        # What a block prints is printed by its first command that prints.
        lines = shown.splitlines()
        speaking = next((line for line in lines if line.startswith("python")), lines[-1])
        for line in lines:
            yield Typed(line, prints if prints and line == speaking else None)


class User:
    """Somebody with an empty directory, a fresh virtual environment and two terminals."""

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
        """Do what one line says; fails if it does, or if it prints something else."""
        started = time.monotonic()
        if typed.line.startswith("tenure dev"):
            self._start(typed.line)
            return Cost(0.0, time.monotonic() - started)
        process = subprocess.Popen(
            ["/bin/bash", "-c", typed.line],
            cwd=self._directory,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            preexec_fn=die_with_parent(signal.SIGKILL),  # noqa: PLW1509 - it takes no lock
        )
        if process.stdout is None:
            raise AssertionError("it has a pipe")
        printed = process.stdout.read()
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            raise SystemExit(f"$ {typed.line}\n{printed}\n`tenure dev` says:\n{self.said()}")
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
        if not wait_for(lambda: READY in self.said(), PATIENCE):
            raise SystemExit(f"$ {line}\n{self.said()}")

    def said(self) -> str:
        """What `tenure dev` has said so far."""
        return self._log.read_text() if self._log.exists() else ""

    def in_the_background(self) -> float:
        """What `tenure dev` and all that it started have used of the machine so far."""
        return _used_by(self._dev.pid) if self._dev is not None else 0.0

    def presses_ctrl_c(self) -> None:
        """End `tenure dev`; fails if it does not end well, or leaves something running."""
        if self._dev is None:
            return
        family = _family(self._dev.pid)
        self._dev.send_signal(signal.SIGINT)
        code = self._dev.wait(PATIENCE)
        if code != 0 or "Traceback" in self.said():
            raise SystemExit(f"`tenure dev` ended with {code}:\n{self.said()}")
        if not wait_for(lambda: not any(Path(f"/proc/{pid}").exists() for pid in family), 10):
            raise SystemExit(f"of the processes {family} one is left")

    def leaves(self) -> None:
        """End what still runs, however it went."""
        if self._dev is not None:
            self._dev.kill()
            self._dev.wait()


def _wheel(home: Path) -> Path:
    """Build the wheel there; answers with a file of constraints by which `tenure` means it."""
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
    """A process' parent, and the seconds that it and its ended children have used."""
    # The name, in parentheses, may hold spaces; what follows it does not.
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[1]), sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def _family(root: int) -> list[int]:
    parents: dict[int, int] = {}
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            parents[int(entry.name)] = _stat(int(entry.name))[0]
    found = [root]
    for pid in found:
        found += [child for child, parent in parents.items() if parent == pid]
    return found


def _used_by(root: int) -> float:
    used = 0.0
    for pid in _family(root):
        with suppress(OSError):
            used += _stat(pid)[1]
    return used


def _show(line: str, cost: Cost) -> None:
    print(f"{cost.machine:6.2f} s {cost.wall:7.2f} s  {line}")


def main() -> None:
    """Type it all, and say what it cost; ends with 1 if that is more than promised."""
    home = Path(tempfile.mkdtemp(prefix="tenure-first-"))
    # As root, the private server is another user's, who has to get there.
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
    for typed in commands("The first five minutes"):
        cost = user.types(typed)
        _show(typed.line, cost)
        total += cost.machine
        count += 1
    background = user.in_the_background()
    print(f"{background:6.2f} s            of it in the background")
    total += background
    print(f"first result after {count} commands and {total:.1f} s of machine time")
    for typed in commands("The third minute"):
        _show(typed.line, user.types(typed))
    if count > MOST_COMMANDS or total > MOST_SECONDS:
        raise SystemExit(f"promised are {MOST_COMMANDS} commands and {MOST_SECONDS:g} s")


if __name__ == "__main__":
    main()
