"""The example's Django project: in this process, once, and as processes of its own."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import django
from django.conf import settings
from django.db import connections
from psycopg import conninfo

from support.binaries import ROOT
from support.processes import children, die_with_parent

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SHOP = ROOT / "examples" / "django_shop"
_STEERED_BY = ("TENURE_", "DATABASE_URL", "DJANGO_", "PYTHONPATH")


def configure() -> None:
    """Set Django up with the example's settings, if that has not been done in this process.

    Not by DJANGO_SETTINGS_MODULE: programs that tests start would inherit it.
    """
    if settings.configured:
        return
    sys.path.insert(0, str(SHOP))
    from project import settings as example  # noqa: PLC0415 - found only now

    values = {name: getattr(example, name) for name in dir(example) if name.isupper()}
    settings.configure(**values)
    django.setup()


def as_django_says(url: str) -> dict[str, Any]:
    """A database's URL in the words of settings.DATABASES."""
    given = conninfo.conninfo_to_dict(url)
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": given["dbname"],
        "USER": given["user"],
        "HOST": given["host"],
        "PORT": given["port"],
    }


@contextmanager
def default_database(url: str) -> Iterator[None]:
    """Let this be the database `default` of this process for a while."""
    configure()
    connections["default"].close()
    answer = connections.settings["default"]
    before = dict(answer)
    answer.update(as_django_says(url))
    try:
        yield
    finally:
        connections["default"].close()
        answer.update(before)


class Shop:
    """The example on a database, run by its own commands."""

    def __init__(self, url: str, directory: Path) -> None:
        self.url = url
        self.mail = directory / "mail"
        self.mail.mkdir(exist_ok=True)
        self._directory = directory
        plain = {k: v for k, v in os.environ.items() if not k.startswith(_STEERED_BY)}
        self.environment = plain | {
            "DATABASE_URL": url,
            "MAIL_DIR": str(self.mail),
            "TENURE_RUN_DIR": str(directory / "run"),
        }

    def manage(self, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """What `manage.py` does and says."""
        return self.run([sys.executable, "manage.py", *words], environment)

    def run(
        self,
        command: list[str],
        environment: dict[str, str] | None = None,
        cwd: Path = SHOP,
    ) -> subprocess.CompletedProcess[str]:
        """What a command does and says, where the project is."""
        return subprocess.run(
            command,
            cwd=cwd,
            env=self.environment | (environment or {}),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )

    @contextmanager
    def worker(self, *options: str, **environment: str) -> Iterator[Working]:
        """A real worker as long as the block lasts."""
        with self._background("tenure_worker", *options, **environment) as worker:
            yield worker

    @contextmanager
    def server(self) -> Iterator[str]:
        """Django's own server as long as the block lasts; its address."""
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            address = f"127.0.0.1:{free.getsockname()[1]}"
        with self._background("runserver", "--noreload", address):
            yield f"http://{address}"

    @contextmanager
    def _background(self, command: str, *options: str, **environment: str) -> Iterator[Working]:
        log = self._directory / f"{command}.log"
        with log.open("ab") as file:
            process = subprocess.Popen(
                [sys.executable, "manage.py", command, *options],
                cwd=SHOP,
                env=self.environment | environment,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                preexec_fn=die_with_parent(signal.SIGKILL),  # noqa: PLW1509 - it takes no lock
            )
        try:
            yield Working(process, log)
        finally:
            process.kill()
            process.wait()


class Working:
    """A command of the project's that runs."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path) -> None:
        self._process = process
        self._log = log

    @property
    def children(self) -> list[int]:
        """The processes that run handlers."""
        return children(self._process.pid)

    def stop(self) -> int:
        """Drain it; its exit code."""
        self._process.terminate()
        return self._process.wait(60)

    def log(self) -> str:
        """What it has said so far."""
        return self._log.read_text(errors="replace")
