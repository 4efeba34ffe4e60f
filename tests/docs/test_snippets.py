"""What the pages show is run, in the order in which a reader would: nothing shown is made up.

The blocks of a page share a directory, a fresh database and the workers that the page starts.

- ```python that begins with `# name.py` is written to that file, with `# name.py, continued`
  appended to it; any other is a program of its own.
- ```sh is run line by line. `tenure worker`, `dev`, `demo` and `server` stay in the background
  until the page starts the next one, kills it, or ends. What a reader does once by hand is named
  in BY_HAND; nothing else is skipped.
- ```text right after one of these is what it prints, to the letter.
- ```sql is run in the page's database; ```toml, ```ini and ```yaml are read as what they are, and
  written to a file that their first line names.
- ```py is code for another library, shown beside ours: it is compiled, and not run.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tomllib
from configparser import ConfigParser
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest
import yaml

from support.processes import die_with_parent, wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
PAGES = [
    "README.md",
    *(f"docs/{name}.md" for name in ("index", "from-celery")),
    *(str(page.relative_to(ROOT)) for page in sorted((ROOT / "docs/tutorial").glob("*.md"))),
    *(f"docs/reference/{name}.md" for name in ("python", "selectors", "stats")),
    *(str(page.relative_to(ROOT)) for page in sorted((ROOT / "docs/how-to").glob("*.md"))),
]
RUN = {"python", "sh", "sql", "toml", "ini", "yaml", "py"}
SPHINX_DIRECTIVE = {"{toctree}", "{eval-rst}"}
# tests/server/test_proxy.py runs the file of the repository, tests/kinds/test_http_worker.py the
# receiver in JavaScript.
ELSEWHERE = {"{literalinclude} ../../deploy/haproxy/haproxy.cfg", "js"}
COMMANDS = ("tenure ", "python ", "sleep ", "kill ")
STAYING = ("tenure worker", "tenure dev", "tenure demo", "tenure server")
READY = "Press Ctrl-C to stop"
RELOADED = "reloaded"
BY_HAND = ("pip ", "export ", "just ")
STEERED_BY = ("TENURE_", "DATABASE_URL", "XDG_", "PG", "NO_COLOR", "FORCE_COLOR", "PYTHON")
PATIENCE = 100.0


@dataclass(frozen=True, slots=True)
class Block:
    """One fenced block of a page, and what the page says it prints."""

    line: int
    kind: str
    text: str
    prints: str | None = None


def blocks(page: str) -> Iterator[Block]:
    """The blocks of a page that can be run, in order."""
    fence = re.compile(
        r"^```([^\n]*)\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.DOTALL | re.MULTILINE
    )
    text = (ROOT / page).read_text()
    for found in fence.finditer(text):
        kind, inner, prints = found.groups()
        if kind in RUN:
            yield Block(text.count("\n", 0, found.start()) + 1, kind, inner, prints)


class Reader:
    """A reader who does what a page says, in a directory of their own."""

    def __init__(self, directory: Path, url: str) -> None:
        self._directory = directory / "work"
        self._directory.mkdir()
        self._log = directory / "worker.log"
        self._worker: subprocess.Popen[bytes] | None = None
        self._reloads = False
        commands = directory / "bin"
        commands.mkdir()
        for name, means in (("python", ""), ("tenure", "-m tenure ")):
            file = commands / name
            file.write_text(f'#!/bin/sh\nexec "{sys.executable}" {means}"$@"\n')
            file.chmod(0o755)
        plain = {k: v for k, v in os.environ.items() if not k.startswith(STEERED_BY)}
        self._environment = plain | {
            "PATH": f"{commands}:{os.environ['PATH']}",
            "TENURE_DATABASE_URL": url,
            "TENURE_RUN_DIR": str(directory / "run"),
        }

    def do(self, block: Block) -> str:
        """Do what a block says; answers with what it printed."""
        match block.kind:
            case "python" if not self._write(block.text):
                return self._run([sys.executable, "-c", block.text])
            case "sh":
                lines = [line for line in block.text.splitlines() if line.strip()]
                return "".join(self._line(line) for line in lines)
            case "sql":
                return self._query(block.text)
            case "toml" | "ini" | "yaml":
                self._write(block.text)
                read(block)
            case "py":
                compile(block.text, "shown", "exec")
            case _:
                pass
        return ""

    def _write(self, text: str) -> bool:
        """Write the text to the file that its first line names, if it does."""
        first, _, rest = text.partition("\n")
        named = re.fullmatch(r"# ([\w./-]+\.\w+)(, continued)?", first)
        if named is None:
            return False
        place = self._directory / named[1]
        place.parent.mkdir(parents=True, exist_ok=True)
        if place.exists() and place.read_text() == text:
            return True
        output = self.log().count(RELOADED)
        with place.open("a" if named[2] else "w") as file:
            file.write(f"\n\n{rest}" if named[2] else text)
        if self._reloads and place.suffix == ".py":
            assert wait_for(lambda: self.log().count(RELOADED) > output, PATIENCE), self.log()
        return True

    def _query(self, text: str) -> str:
        with psycopg.connect(self._environment["TENURE_DATABASE_URL"]) as connection:
            answer = connection.execute(text.encode())
            rows = answer.fetchall() if answer.description else []
        return "".join(f"{' | '.join(map(str, row))}\n" for row in rows)

    def _line(self, line: str) -> str:
        if line.startswith(BY_HAND):
            return ""
        assert line.startswith(COMMANDS), f"this line is not run: {line}"
        if line.startswith(STAYING) and "--drain" not in line:
            self.stop()
            self._start(line)
            return ""
        printed = self._run(["/bin/sh", "-c", line])
        if line.startswith("kill -9"):
            assert self._worker is not None
            assert self._worker.wait(PATIENCE) == -signal.SIGKILL
            self._worker, self._reloads = None, False
        return printed

    def _run(self, command: list[str]) -> str:
        ended = subprocess.run(
            command,
            cwd=self._directory,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        assert ended.returncode == 0, f"{ended.stderr}\nthe worker says:\n{self.log()}"
        return ended.stdout

    def _start(self, line: str) -> None:
        output = self.log().count(READY)
        with self._log.open("ab") as log:
            self._worker = subprocess.Popen(
                ["/bin/sh", "-c", f"exec {line}"],
                cwd=self._directory,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                preexec_fn=die_with_parent(signal.SIGKILL),  # noqa: PLW1509 - it takes no lock
            )
        self._reloads = line.startswith("tenure dev")
        if line.startswith(("tenure dev", "tenure demo")):
            assert wait_for(lambda: self.log().count(READY) > output, PATIENCE), self.log()

    def log(self) -> str:
        """What the page's workers have said so far."""
        return self._log.read_text() if self._log.exists() else "nothing"

    def stop(self) -> None:
        """Stop the worker as the pages say, if one runs: by a Ctrl-C, and it ends well."""
        worker, self._worker, self._reloads = self._worker, None, False
        if worker is not None:
            worker.send_signal(signal.SIGINT)
            assert worker.wait(PATIENCE) == 0, self.log()

    def leave(self) -> None:
        """End what still runs, however the page went."""
        if self._worker is not None:
            self._worker.kill()
            self._worker.wait()


def read(block: Block) -> None:
    """Read a block of configuration as what it is."""
    match block.kind:
        case "toml":
            tomllib.loads(block.text)
        case "ini":
            ConfigParser(strict=False, interpolation=None).read_string(block.text)
        case _:
            list(yaml.safe_load_all(block.text))


@pytest.mark.timeout(400)
@pytest.mark.parametrize("page", PAGES)
def test_what_a_page_shows_works_when_it_is_done_in_order(
    page: str, tmp_path: Path, empty_database: str
) -> None:
    reader = Reader(tmp_path, empty_database)
    try:
        for block in blocks(page):
            printed = reader.do(block)
            if block.prints is not None:
                assert printed == block.prints, f"{page}:{block.line}\n{reader.log()}"
        reader.stop()
    finally:
        reader.leave()


@pytest.mark.parametrize("page", PAGES)
def test_nothing_that_a_page_shows_escapes_the_run(page: str) -> None:
    fences = re.findall(r"^```([^\n]*)$", (ROOT / page).read_text(), re.MULTILINE)[::2]
    found = list(blocks(page))
    printing = [block for block in found if block.prints is not None]
    assert sum(kind in RUN for kind in fences) == len(found)
    assert fences.count("text") == len(printing) > 0
    assert set(fences) <= {*RUN, "text", *SPHINX_DIRECTIVE, *ELSEWHERE}
