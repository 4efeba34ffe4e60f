"""The gRPC server process of this suite, its certificates, and workers that may call it."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from support.binaries import ROOT
from support.processes import die_with_parent, wait_for
from tenure.admin import By

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

BY = By("ada", source="suite", reason="because")
_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Stage:
    """The server: its ports by name, and what it has read."""

    ports: Mapping[str, int]
    directory: Path

    def target(self, port: str = "plain", host: str = "localhost") -> str:
        return f"{host}:{self.ports[port]}"

    def settings(self, **more: Any) -> dict[str, Any]:
        """What allows a worker to call every port, without TLS where the server has none."""
        plain = [port for port in self.ports if port not in {"tls", "mutual"}]
        return {
            "allow": [self.target(port) for port in self.ports],
            "plaintext": [self.target(port) for port in plain],
            "ca_file": str(self.directory / "authority.pem"),
            **more,
        }

    def requests(self, **fields: str) -> list[dict[str, Any]]:
        """The requests with these fields, oldest first."""
        lines = map(json.loads, (self.directory / "requests").read_text().splitlines())
        return [line for line in lines if line.items() >= fields.items()]

    def clear(self) -> None:
        (self.directory / "requests").write_text("")

    def has_read(self, within: float = 10.0, **fields: str) -> bool:
        return wait_for(lambda: bool(self.requests(**fields)), within)


@contextmanager
def started(directory: Path) -> Iterator[Stage]:
    """Run the server, in its own process."""
    make_certificates(directory)
    (directory / "requests").touch()
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.kinds.grpc_server", str(directory)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=die_with_parent(signal.SIGKILL),  # noqa: PLW1509 - it takes no lock
    )
    with process:
        assert process.stdout is not None
        try:
            yield Stage(json.loads(process.stdout.readline()), directory)
        finally:
            process.kill()


def make_certificates(directory: Path) -> None:
    """An authority, a server and a client that it signed, and a server that another one signed."""
    authority = _issue(directory, "authority")
    _issue(directory, "server", authority, "localhost")
    _issue(directory, "client", authority)
    _issue(directory, "stranger")


def _issue(
    directory: Path,
    name: str,
    authority: tuple[x509.Name, ec.EllipticCurvePrivateKey] | None = None,
    *hosts: str,
) -> tuple[x509.Name, ec.EllipticCurvePrivateKey]:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    issuer, signing_key = authority or (subject, key)
    now = datetime.now(UTC)
    alternatives = [x509.DNSName(host) for host in hosts or ("nothing.example",)]
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _DAY)
        .not_valid_after(now + _DAY)
        .add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
        .add_extension(x509.BasicConstraints(ca=authority is None, path_length=None), critical=True)
        .sign(signing_key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    (directory / f"{name}.pem").write_bytes(certificate.public_bytes(pem))
    (directory / f"{name}.key").write_bytes(
        key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return subject, key
