"""HAProxy with the configuration that Tenure ships, in front of a server on loopback."""

from __future__ import annotations

import os
import shutil
import ssl
import subprocess
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import httpx

from support.binaries import ROOT
from support.processes import wait_for
from support.serving import free_port

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

HAPROXY = shutil.which("haproxy") or shutil.which("haproxy", path="/usr/sbin")
_CONFIGURATION = ROOT / "deploy/haproxy/haproxy.cfg"
_STARTS_WITHIN = 20


@dataclass(frozen=True)
class Proxy:
    """A running proxy: its port, and what a client needs to trust it."""

    port: int
    trust: ssl.SSLContext

    def client(self, *, address: str = "127.0.0.1") -> httpx.Client:
        """A client with this address of its own, which has limits of its own."""
        way = httpx.HTTPTransport(local_address=address, verify=self.trust)
        return httpx.Client(base_url=f"https://127.0.0.1:{self.port}", transport=way, timeout=30)

    def is_up(self) -> bool:
        """Whether the server behind it answers."""
        try:
            with self.client() as client:
                return client.get("/live").is_success
        except httpx.TransportError:
            return False


@contextmanager
def proxied(to: int, directory: Path, shorter: Mapping[str, str] | None = None) -> Iterator[Proxy]:
    """HAProxy in front of this port, with the file as it is, except for `shorter` waits."""
    certificate, both = _certify(directory)
    text = _CONFIGURATION.read_text()
    for shipped, here in (shorter or {}).items():
        if shipped not in text:
            raise ValueError(f"haproxy.cfg must have the line {shipped!r}")
        text = text.replace(shipped, here)
    file, port = directory / "haproxy.cfg", free_port()
    file.write_text(text)
    environment = os.environ | {
        "TENURE_PROXY_BIND": f"127.0.0.1:{port}",
        "TENURE_PROXY_CERT": str(both),
        "TENURE_PROXY_TO": str(to),
    }
    with subprocess.Popen([HAPROXY or "haproxy", "-db", "-q", "-f", file], env=environment) as run:
        proxy = Proxy(port, ssl.create_default_context(cafile=str(certificate)))
        try:
            if not wait_for(proxy.is_up, _STARTS_WITHIN):
                raise TimeoutError(f"haproxy does not answer on port {port}")
            yield proxy
        finally:
            run.terminate()


def _certify(directory: Path) -> tuple[Path, Path]:
    """A certificate for loopback; and a file that has its key too, as HAProxy reads it."""
    key, certificate, both = (directory / name for name in ("key", "certificate", "both.pem"))
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"),
            *("-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"),
            *("-keyout", str(key), "-out", str(certificate)),
        ],
        check=True,
        capture_output=True,
    )
    both.write_text(certificate.read_text() + key.read_text())
    return certificate, both
