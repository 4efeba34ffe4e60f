"""Real servers as processes, and apps whose workers run kinds of work."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import pytest

from support.binaries import ROOT
from support.processes import die_with_parent
from tests.kinds.certificates import Authority

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class HostileServer:
    """The server process of this suite: its ports by name, and the requests that it has read."""

    ports: Mapping[str, int]
    directory: Path

    def url(self, path: str = "", port: str = "plain", host: str = "localhost") -> str:
        scheme = "http" if port in {"plain", "closed", "full"} else "https"
        return f"{scheme}://{host}:{self.ports[port]}/{path}"

    def requests(self, path: str) -> list[dict[str, Any]]:
        """The requests with this path, oldest first."""
        lines = (self.directory / "requests").read_text().splitlines()
        return [one for one in map(json.loads, lines) if one["target"].strip("/") == path]


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HostileServer]:
    """A server that misbehaves, over HTTP and over HTTPS with an authority of its own."""
    directory = tmp_path_factory.mktemp("hostile")
    authority = Authority(directory)
    authority.issue("good", "localhost", "127.0.0.1")
    authority.issue("expired", "localhost", expired=True)
    authority.issue("other-name", "elsewhere.example")
    authority.issue("self-signed", "localhost", own=True)
    authority.issue("visitor")
    Authority(directory, "stranger").issue("untrusted", "localhost")
    (directory / "requests").touch()
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.kinds.hostile_server", str(directory)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=die_with_parent(signal.SIGKILL),  # noqa: PLW1509 - it takes no lock
    )
    try:
        assert process.stdout is not None
        yield HostileServer(json.loads(process.stdout.readline()), directory)
    finally:
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


class Configure(Protocol):
    """Sets the table of a kind for this test."""

    def __call__(self, **table: Any) -> None: ...


@pytest.fixture
def configured(monkeypatch: pytest.MonkeyPatch) -> Iterator[Configure]:
    """Sets `[kinds.http]` for this test, as a worker reads it when it starts."""
    from tenure.kinds import http  # noqa: PLC0415 - suites of other kinds don't need it

    def configure(**table: Any) -> None:
        monkeypatch.setenv("TENURE_KINDS_HTTP", json.dumps(table))
        http.prepare()

    yield configure
    http._configuration.cache_clear()
