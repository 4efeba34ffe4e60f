"""`just prove abuse [--short] [PART …]`: clients with small credentials, or none, attack a server
while a worker renews its leases there. No lease is lost, and 99 % of the renewals take at most
250 ms."""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import httpx

from proof.abuse.attacks import ATTACKS
from proof.report import Report
from proof.second_try import tried
from proof.via_http.server import Server
from support.binaries import ROOT
from support.cluster import Cluster
from support.databases import Databases
from support.store import install
from tenure import Tenure
from tenure.admin import By

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

BAR = 0.25
# With as few files as systemd gives a service, and no right to more.
_PROGRAM = """
import resource
resource.setrlimit(resource.RLIMIT_NOFILE, (1024, 1024))
from proof.via_http.server import be
be()
"""
_LEASES = 20
# Short enough that a server that does not answer for a while costs leases.
_LEASE = 15.0
_RENEW_EVERY = 0.1
_LIST_EVERY = 1.0
_SECONDS, _SHORT = 600.0, 2.5
_END_WITHIN = 60.0
_DIRECTORY = ROOT / ".cache/proof/abuse"
_SCOPES = {"payloads": ["enqueue"], "names": ["work"]}
# Parts in which an operator looks at lists meanwhile.
_LISTED = {"payloads"}


class Victim:
    """A worker with leases, which renews them and notes how long each renewal took."""

    def __init__(self, client: httpx.Client) -> None:
        self._client = client
        self.took: list[float] = []
        self.failed: list[str] = []
        self.lost: set[str] = set()
        jobs = [{"task": "t", "queue": "victim", "lease": _LEASE} for _ in range(_LEASES)]
        client.post("/v1/jobs:batch", json={"jobs": jobs}).raise_for_status()
        request = {"queues": ["victim"], "worker": {"name": "victim"}, "count": _LEASES}
        answer = client.post("/v1/leases:acquire", json=request).raise_for_status()
        self.leases = [job["lease"] for job in answer.json()["jobs"]]
        assert len(self.leases) == _LEASES

    def renew(self) -> None:
        """Renew all leases once."""
        began = time.monotonic()
        try:
            answer = self._client.post("/v1/leases:renew", json={"leases": self.leases})
            answer.raise_for_status()
            for lease, one in zip(self.leases, answer.json()["leases"], strict=True):
                if one["answer"] == "lost":
                    self.lost.add(lease)
        except httpx.HTTPError as error:
            self.failed.append(str(error) or type(error).__name__)
        self.took.append(time.monotonic() - began)

    def renew_while(self, is_on: Callable[[], bool]) -> None:
        """Renew them meanwhile, ten times a second."""
        while is_on():
            next_at = time.monotonic() + _RENEW_EVERY
            self.renew()
            time.sleep(max(next_at - time.monotonic(), 0.0))


def percentile(took: Sequence[float], share: float) -> float:
    """The smallest value that this share of the values does not exceed."""
    return sorted(took)[min(int(len(took) * share), len(took) - 1)]


@contextmanager
def _attacking(
    name: str, url: str, secret: str, seconds: float
) -> Iterator[subprocess.Popen[bytes]]:
    """Attack meanwhile; NAME.json gets what came of it."""
    words = [sys.executable, "-m", "proof.abuse.attacks", name, url, secret or "-", str(seconds)]
    with (
        (_DIRECTORY / f"{name}.json").open("wb") as out,
        (_DIRECTORY / f"{name}.log").open("wb") as errors,
        subprocess.Popen(words, cwd=ROOT, stdout=out, stderr=errors) as process,  # noqa: S603 - itself
    ):
        try:
            yield process
        finally:
            process.kill()


@contextmanager
def _listing(name: str, url: str, secret: str) -> Iterator[None]:
    """Be an operator who looks at the jobs meanwhile, in another process."""
    if name not in _LISTED:
        yield
        return
    program = (
        "import sys, time, httpx\n"
        "url, secret = sys.argv[1:]\n"
        "headers = {'Authorization': f'Bearer {secret}'}\n"
        "with httpx.Client(base_url=url, timeout=30, headers=headers) as client:\n"
        "    while True:\n"
        "        try: client.get('/v1/jobs', params={'page_size': 50})\n"
        "        except httpx.HTTPError: pass\n"
        f"        time.sleep({_LIST_EVERY})\n"
    )
    words = [sys.executable, "-c", program, url, secret]
    with subprocess.Popen(words) as process:  # noqa: S603 - itself
        try:
            yield
        finally:
            process.kill()


def _attacked(name: str, server: Server, url: str, seconds: float, report: Report) -> None:
    """One attack, and what the victim saw of it."""
    report.part(name)
    app = Tenure(url)
    create = app.admin.tokens.create
    victim_token = create("victim", By("proof"), scopes=["work", "enqueue"]).secret
    operator = create("operator", By("proof"), scopes=["read", "payload:read"]).secret
    scopes = _SCOPES.get(name)
    secret = ""
    if scopes:
        secret = create(name, By("proof"), scopes=scopes, queues=["abuse.*"]).secret
    app.close()
    headers = {"Authorization": f"Bearer {victim_token}"}
    with httpx.Client(base_url=server.url, headers=headers, timeout=20) as client:
        victim = Victim(client)
        until = time.monotonic() + min(seconds / 2, 3)
        victim.renew_while(lambda: time.monotonic() < until)
        report.note("p99 of a renewal before", percentile(victim.took, 0.99) * 1000, " ms")
        victim.took.clear()
        with (
            _attacking(name, server.url, secret, seconds) as attack,
            _listing(name, server.url, operator),
        ):
            last = time.monotonic() + seconds + _END_WITHIN
            victim.renew_while(lambda: attack.poll() is None and time.monotonic() < last)
        _judge(victim, (_DIRECTORY / f"{name}.json").read_text(), report)


def _judge(victim: Victim, found: str, report: Report) -> None:
    attempts: dict[str, Any] = json.loads(found or "{}")
    report.at_least("kinds of answers to the attack", len(attempts), 1)
    for what, count in sorted(attempts.items()):
        report.note(f"  the attack: {what}", count)
    report.note("renewals", len(victim.took))
    report.note("median", percentile(victim.took, 0.5) * 1000, " ms")
    report.note("longest", max(victim.took) * 1000, " ms")
    report.at_most("p99 of a renewal", percentile(victim.took, 0.99) * 1000, BAR * 1000, " ms")
    report.none("renewals that failed", victim.failed, timed=True)
    report.none("leases lost", victim.lost)


def prove(parts: Sequence[str], *, seconds: float) -> Report:
    """Run the parts, one after the other."""
    report = Report({"seconds each": seconds})
    shutil.rmtree(_DIRECTORY, ignore_errors=True)
    _DIRECTORY.mkdir(parents=True)
    with Cluster(15) as cluster:
        databases = Databases(cluster)
        url = databases.create(databases.template("tenure", install))
        server = Server(_DIRECTORY / "server.log", scaled=False, program=_PROGRAM)
        server.start({"TENURE_DATABASE_URL": url})
        try:
            for name in parts:
                _attacked(name, server, url, seconds, report)
        finally:
            server.end()
    written = (_DIRECTORY / "server.log").stat().st_size / 1024
    report.at_most("log of the server", written, 1024, " KiB")
    return report


def main(argv: list[str]) -> int:
    """Run them; 0 if no bar was missed."""
    parser = argparse.ArgumentParser(prog="just prove abuse", description=__doc__)
    parser.add_argument("parts", nargs="*", help=f"{', '.join(ATTACKS)} (default: all)")
    parser.add_argument("--short", action="store_true", help=f"{_SHORT} s each")
    parser.add_argument(
        "--seconds", type=float, help=f"length of each attack (default: {_SECONDS:g})"
    )
    parser.add_argument(
        "--zeros", action="store_true", help="fail only for what must be zero; report the rest"
    )
    options = parser.parse_args(argv)
    if unknown := set(options.parts) - ATTACKS.keys():
        parser.error(f"unknown: {', '.join(unknown)}")
    seconds = options.seconds or (_SHORT if options.short else _SECONDS)

    def run() -> Report:
        return prove(options.parts or [*ATTACKS], seconds=seconds)

    path = _DIRECTORY.with_suffix(".json")
    return tried(run, path, short=options.short, zeros=options.zeros)
