"""`tenure demo`: what it shows has happened; and nothing of it is left, however it ends."""

from __future__ import annotations

import re
import shlex
import signal
import socket
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest

import tenure._local_postgres
from support.processes import alive, die_with_parent, family, wait_for
from tenure.admin import By, connect
from tenure.cli import demo
from tenure.cli.errors import CommandError, Exit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.cli.conftest import Command

PATIENCE = 60.0
LINK = re.compile(r"dashboard: (http://127.0.0.1:\d+)/sign-in#(tnc_\S+)")
DATABASE = re.compile(r"--database-url (.+)")
LOGS = re.compile(r"logs: (\S+)")


class Demo:
    """A demo that is ready, and a client of its API."""

    def __init__(self, process: subprocess.Popen[bytes], words: Path) -> None:
        self.process = process
        self._words = words
        assert wait_for(lambda: "Press Ctrl-C" in self.printed(), PATIENCE), self.printed()
        self.directory = Path(self._found(LOGS)[1])
        link = self._found(LINK)
        with connect(shlex.split(self._found(DATABASE)[1])[0]) as admin:
            secret = admin.tokens.create("test", By("test"), scopes=["admin"]).secret
        headers = {"Authorization": f"Bearer {secret}"}
        self.api = httpx.Client(base_url=f"{link[1]}/v1", headers=headers, timeout=30)
        self._everyone: list[int] = []

    def printed(self) -> str:
        return self._words.read_text()

    def _found(self, words: re.Pattern[str]) -> re.Match[str]:
        found = words.search(self.printed())
        assert found, self.printed()
        return found

    def get(self, path: str, **params: Any) -> Any:
        return self.api.get(path, params=params).raise_for_status().json()

    def shows(self, what: Callable[[], Any]) -> Any:
        """What is there, once it is."""
        assert wait_for(lambda: bool(what()), PATIENCE), self.printed()
        return what()

    def jobs(self, state: str, task: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.get("/jobs", state=state, task=task)["jobs"]
        return found

    def attempts(self, job: dict[str, Any]) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.get(f"/jobs/{job['id']}/attempts")["attempts"]
        return found

    def end(self, request: signal.Signals) -> int:
        """Its exit code."""
        postgres = (self.directory / "data/postmaster.pid").read_text().split()[0]
        self._everyone = [*family(self.process.pid), int(postgres)]
        self.process.send_signal(request)
        return self.process.wait(PATIENCE)

    def is_gone(self) -> bool:
        left = [*self.directory.parent.glob(f"{self.directory.name}*")]
        return not left and not any(alive(pid) for pid in self._everyone)


@contextmanager
def playing(command: Command, *options: str) -> Iterator[Demo]:
    """A demo as long as the block lasts, and no longer."""
    words = command.directory / "demo.log"
    with words.open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "tenure", "demo", *options],
            cwd=command.directory,
            # It hears nothing of what is configured here.
            env=command.environment(TENURE_SCHEMA="elsewhere", DATABASE_URL="postgresql://no"),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            preexec_fn=die_with_parent(signal.SIGKILL),  # noqa: PLW1509 - it takes no lock
        )
    try:
        shown = Demo(process, words)
        with shown.api:
            yield shown
    finally:
        process.kill()
        process.wait()


@pytest.mark.timeout(300)
def test_every_page_has_something_true_to_show_and_ctrl_c_leaves_nothing(command: Command) -> None:
    """Shows R35."""
    with playing(command, "--for", "120", "--port", "0") as shown:
        dead = shown.shows(lambda: shown.jobs("failed", "reports.tax"))
        assert len(shown.attempts(dead[0])) == 2
        groups = shown.shows(lambda: shown.get("/failed/groups")["groups"][1:])
        assert groups
        [retried, *_] = shown.shows(
            lambda: [j for j in shown.jobs("completed", "mail.receipt") if j["attempt"] > 1]
        )
        assert shown.attempts(retried)[0]["outcome"] == "failed"
        [running, *_] = shown.shows(
            lambda: [j for j in shown.jobs("running", "imports.catalogue") if j["progress"]]
        )
        assert running["cursor"] <= running["progress"]["total"]
        assert {q["name"]: q["max_running"] for q in shown.get("/queues")["queues"]}[
            "payments"
        ] == 2
        assert shown.jobs("queued", "payments.charge")
        assert shown.jobs("cancelled", "payments.charge")
        ticks = shown.shows(lambda: shown.get("/schedules/imports.stock/ticks")["ticks"])
        assert {"fired", "skipped"} == {tick["outcome"] for tick in ticks}
        assert "was killed" in shown.shows(shown.printed)
        imports = ("running", "completed", "cancelled")
        lost = shown.shows(
            lambda: [
                attempt
                for state in imports
                for job in shown.jobs(state, "imports.catalogue")
                for attempt in shown.attempts(job)
                if attempt["outcome"] == "lost"
            ]
        )
        assert lost
        assert shown.shows(lambda: shown.get("/operations")["operations"])
        assert shown.end(signal.SIGINT) == Exit.DONE
        assert wait_for(shown.is_gone, PATIENCE)
        assert "Traceback" not in shown.printed()


@pytest.mark.timeout(300)
def test_after_a_kill_nothing_is_left_either(command: Command) -> None:
    with playing(command, "--port", "0") as shown:
        assert shown.end(signal.SIGKILL) == -signal.SIGKILL
        assert wait_for(shown.is_gone, PATIENCE)


@contextmanager
def _taken(port: int) -> Iterator[None]:
    """Listen on a port. Another test may have it for a while."""
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)

        def is_mine() -> bool:
            try:
                taken.bind(("127.0.0.1", port))
            except OSError:
                return False
            return True

        assert wait_for(is_mine, PATIENCE)
        taken.listen()
        yield


@pytest.mark.timeout(300)
def test_it_ends_by_itself_and_skips_a_taken_default_port(command: Command) -> None:
    with _taken(8400), playing(command, "--for", "1") as shown:
        assert ":8400/" not in shown.printed()
        assert shown.process.wait(PATIENCE) == Exit.DONE
        assert wait_for(shown.is_gone, PATIENCE)


def test_requested_port_that_is_taken_is_refused(command: Command) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        ended = command("demo", "--port", taken.getsockname()[1])
    assert ended.code == Exit.USAGE
    assert "--port" in ended.error[2]


@pytest.mark.parametrize(
    ("missing", "remedy"), [("server", "tenure[server,binary]"), ("PostgreSQL", "apt-get install")]
)
def test_missing_part_is_reported_with_the_fix(
    missing: str, remedy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if missing == "server":
        monkeypatch.setattr(demo, "_SERVED_BY", ("no_such_module",))
    else:
        monkeypatch.setattr(tenure._local_postgres, "find_binaries", lambda: None)
    with pytest.raises(CommandError) as raised:
        demo.demo()
    assert remedy in raised.value.todo
