"""A real server process on loopback, and callers with access tokens."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import httpx

from support.processes import wait_for
from tenure import Tenure
from tenure.admin import By
from tenure.server.dashboard.session import csrf_token
from tenure.types import Scope

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tenure.admin import Admin

OPS = By("ops")


@dataclass
class Service:
    """One server: where it is, whose database it has, and how it is spoken to."""

    url: str
    database: str
    secret: str
    words: Path
    process: subprocess.Popen[bytes]
    admin: Admin

    def caller(self, *scopes: str, queues: tuple[str, ...] = ("*",)) -> httpx.Client:
        """A client with a token of these scopes (default: the first token)."""
        secret = self.secret
        if scopes:
            made = self.admin.tokens.create("test", OPS, scopes=scopes, queues=queues)
            secret = made.secret
        return httpx.Client(
            base_url=self.url, headers={"Authorization": f"Bearer {secret}"}, timeout=30
        )

    @contextmanager
    def browser(self, secret: str | None = None) -> Iterator[httpx.Client]:
        """A client with a session of this token (default: the first token), as a browser has."""
        with httpx.Client(base_url=self.url, timeout=30) as client:
            answer = client.post("/sign-in", data={"token": secret or self.secret})
            if answer.status_code != 303:
                raise RuntimeError(f"sign-in: {answer.status_code}")
            yield client

    @staticmethod
    def mark(client: httpx.Client) -> str:
        """The forms' CSRF token of a client that `browser` made."""
        [secret] = client.cookies.values()
        return csrf_token(secret)

    def enqueue(self, queue: str, **options: Any) -> str:
        """A job, by the first token."""
        with self.caller() as caller:
            body = {"task": "task", "args": {"n": 1}, "queue": queue} | options
            answer = caller.post("/v1/jobs", json=body)
        answer.raise_for_status()
        return str(answer.json()["id"])


def free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])


@contextmanager
def serving(database: str, directory: Path, *options: str) -> Iterator[Service]:
    """A server on this database, from its start to its end."""
    port = free_port()
    words = directory / f"server-{port}.log"
    app = Tenure(database)
    secret = app.admin.tokens.create("first", OPS, scopes=list(Scope)).secret
    with (
        words.open("wb") as file,
        subprocess.Popen(
            [sys.executable, "-m", "tenure", "server", "--port", str(port), *options],
            env=os.environ | {"TENURE_DATABASE_URL": database},
            cwd=directory,
            stdout=file,
            stderr=file,
        ) as process,
    ):
        url = f"http://127.0.0.1:{port}"
        try:
            if not wait_for(lambda: process.poll() is not None or _answers(url), 60):
                raise TimeoutError(words.read_text())
            yield Service(url, database, secret, words, process, app.admin)
        finally:
            app.close()
            if process.poll() is None:
                process.terminate()
                if process.wait(30):
                    raise RuntimeError(words.read_text())


def _answers(url: str) -> bool:
    try:
        return httpx.get(f"{url}/live", timeout=5).is_success
    except httpx.HTTPError:
        return False
