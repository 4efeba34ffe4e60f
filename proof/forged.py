"""`just prove forged [--seed N]`: lease strings that were made up, changed or stolen, or whose time
is over, on every verb; none is accepted, and nothing in the database changes."""

from __future__ import annotations

import argparse
import secrets
import shutil
from collections import Counter
from random import Random
from typing import TYPE_CHECKING, Any

import httpx
import psycopg

from proof.report import Report
from proof.second_try import tried
from proof.via_http.forging import VERBS, attempt, forgeries
from proof.via_http.server import Server
from support.binaries import ROOT
from support.cluster import Cluster
from support.databases import Databases
from support.store import install
from tenure import Tenure
from tenure.admin import By

if TYPE_CHECKING:
    from collections.abc import Iterable

BAR = 1_000
_DIRECTORY = ROOT / ".cache/proof/forged"
_QUEUE = "forged"
# No refusal may change a row; it may leave evidence on a running period that has ended.
_EVERYTHING = """
SELECT md5(string_agg(t.line, '' ORDER BY t.line)) FROM (
    SELECT j::text AS line FROM tenure.job AS j
    UNION ALL SELECT f::text FROM tenure.job_archive AS f
    UNION ALL SELECT d::text FROM tenure.job_failed AS d
    UNION ALL SELECT i::text FROM tenure.job_item AS i
    UNION ALL SELECT (a.job_id, a.token, a.outcome, a.ended_at)::text FROM tenure.attempt AS a
) AS t
"""


class Forger:
    """A client that holds true leases, and tries forged ones. `tried` is how often, by kind."""

    def __init__(self, caller: httpx.Client) -> None:
        self.caller = caller
        self.tried: Counter[str] = Counter()
        self.accepted: list[str] = []
        self._session: str | None = None

    def acquire(self) -> str:
        """A true lease on a new job."""
        made = {"task": "task", "queue": _QUEUE, "lease": 3600}
        self._post("jobs", made)
        request = {"queues": [_QUEUE], "worker": {"name": "forger"}, "session": self._session}
        answer = self._post("leases:acquire", request)
        self._session = answer["session"]
        return str(answer["jobs"][0]["lease"])

    def ended(self, verb: str) -> str:
        """A lease that has ended so; of a job that was given back, the next lease is held."""
        lease = self.acquire()
        answer = attempt(self.caller, verb, lease)
        assert answer is not None, verb
        if verb == "release":
            self._post("leases:acquire", {"queues": [_QUEUE], "worker": {"name": "other"}})
        return lease

    def revoked(self) -> str:
        """A lease that an operator took back; the job is held by another session now."""
        made = self._post("jobs", {"task": "task", "queue": _QUEUE})
        request = {"queues": [_QUEUE], "worker": {"name": "forger"}}
        lease = str(self._post("leases:acquire", request)["jobs"][0]["lease"])
        self._post(f"jobs/{made['id']}:revoke", None)
        self._post("leases:acquire", request | {"wait": 10})
        return lease

    def attempt(self, kind: str, texts: Iterable[str], *, by: httpx.Client | None = None) -> None:
        """Try each text on every verb."""
        for text in texts:
            for verb in VERBS:
                self.tried[kind] += 1
                answer = attempt(by or self.caller, verb, text)
                # Who says again what was heard is told so, and nothing is done.
                if answer is not None and '"repeated"' not in answer:
                    self.accepted.append(f"{kind}, {verb}: {answer}: {text!r}")

    def _post(self, path: str, body: Any) -> Any:
        answer = self.caller.post(f"/v1/{path}", json=body)
        assert answer.is_success, answer.text
        return answer.json()


def prove(*, seed: int) -> Report:
    """Run it on a private server."""
    report = Report({"seed": seed})
    shutil.rmtree(_DIRECTORY, ignore_errors=True)
    _DIRECTORY.mkdir(parents=True)
    report.part("forged")
    with Cluster(15) as cluster:
        databases = Databases(cluster)
        url = databases.create(databases.template("tenure", install))
        app = Tenure(url)
        tokens = [
            app.admin.tokens.create(name, By("proof"), scopes=["work", "enqueue", "operate"])
            for name in ("holder", "other")
        ]
        app.close()
        server = Server(_DIRECTORY / "server.log", scaled=False)
        server.start({"TENURE_DATABASE_URL": url})
        try:
            mine, theirs = (_caller(server.url, made.secret) for made in tokens)
            with mine, theirs, psycopg.connect(url, autocommit=True) as watching:
                _forge(Forger(mine), theirs, f"token:{tokens[0].token.id}", watching, report, seed)
        finally:
            server.end()
    return report


def _caller(url: str, secret: str) -> httpx.Client:
    return httpx.Client(base_url=url, headers={"Authorization": f"Bearer {secret}"}, timeout=30)


def _forge(
    forger: Forger,
    other: httpx.Client,
    holder: str,
    watching: psycopg.Connection[Any],
    report: Report,
    seed: int,
) -> None:
    rng = Random(seed)  # noqa: S311 - to be repeated
    stale = [forger.ended(verb) for verb in ("complete", "fail", "release")]
    stale.append(forger.revoked())
    true, neighbour = forger.acquire(), forger.acquire()
    before = watching.execute(_EVERYTHING).fetchone()
    forger.attempt("of leases that have ended", stale)
    forger.attempt("with another access token", [true, neighbour, *stale], by=other)
    for kind, text in forgeries(true, neighbour, holder, rng):
        forger.attempt(kind, [text])
    changed = before != watching.execute(_EVERYTHING).fetchone()
    report.at_least("tries", forger.tried.total(), BAR)
    for kind, count in forger.tried.items():
        report.note(f"  {kind}", count)
    report.none("accepted", forger.accepted)
    report.none("tables that changed", ["some"] if changed else [])
    report.none(
        "true leases that were refused afterwards",
        [text for text in (true, neighbour) if attempt(forger.caller, "complete", text) is None],
    )


def main(argv: list[str]) -> int:
    """Run it; 0 if no bar was missed."""
    parser = argparse.ArgumentParser(prog="just prove forged", description=__doc__)
    parser.add_argument("--short", action="store_true", help="the same; there is no shorter form")
    parser.add_argument("--seed", type=int, default=secrets.randbelow(1_000_000))
    options = parser.parse_args(argv)
    path = _DIRECTORY.with_suffix(".json")
    return tried(lambda: prove(seed=options.seed), path, short=options.short)
