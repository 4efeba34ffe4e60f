"""`just prove partitions [--short] [--seed N] [--losses N] [--bug NAME]`: N leases lost by
partition."""

from __future__ import annotations

import argparse
import secrets
import shutil
from contextlib import ExitStack
from random import Random
from urllib.parse import urlsplit

import psycopg

from proof.crash import accounts
from proof.crash.fleet import Place
from proof.crash.harness import Bed
from proof.crash.jobs import LEASE
from proof.crash.program import Program
from proof.partitions import effects, jobs, verdict
from proof.partitions.run import SHAPE, Rounds
from proof.partitions.witness import Witness
from proof.report import Report
from proof.second_try import tried
from support.binaries import ROOT
from support.cluster import Cluster
from support.databases import Databases
from support.namespace import Namespace
from support.store import install

FULL = 2_000
SHORT = 250
_DIRECTORY = ROOT / ".cache/proof/partitions"
_SETTINGS = {"max_connections": "400", "shared_buffers": "256MB"}


def prove(*, losses: int, seed: int, bug: str | None = None) -> Report:
    """Run it on private servers, in networks of its own; what was logged stays in .cache."""
    report = Report({"seed": seed, "lease": LEASE, "losses": losses, "bug": bug})
    print(f"seed {seed}, lease {LEASE:g} s", flush=True)
    shutil.rmtree(_DIRECTORY, ignore_errors=True)
    with ExitStack() as stack:
        networks = [stack.enter_context(Namespace()) for _ in range(SHAPE.workers)]
        listen = ",".join(["127.0.0.1", *(network.host for network in networks)])
        cluster = stack.enter_context(Cluster(15, _SETTINGS | {"listen_addresses": listen}))
        _admit(cluster, networks)
        beside = stack.enter_context(Cluster(15, _SETTINGS))
        ledger = effects.address(beside)
        effects.prepare(ledger)
        databases = Databases(cluster)
        url = databases.create(databases.template("tenure", install))
        report.part("partitions")
        rng = Random(seed)  # noqa: S311 - to be repeated
        values = {effects.VARIABLE: ledger}
        places = [
            Place(network.command, values | {"TENURE_DATABASE_URL": _through(url, network)})
            for network in networks
        ]
        bed = Bed(url, _DIRECTORY, SHAPE, rng, bug, target=jobs.TARGET, places=places)
        stack.callback(bed.close)
        takers = Program(
            jobs.TARGET, _DIRECTORY / "takers.log", bed.environment | values, count=2, slots=8
        )
        stack.callback(takers.end)
        witness = Witness(url)
        rounds = Rounds(bed, takers, networks, report)
        with witness, bed:
            rounds.run(losses)
            takers.end()
        verdict.tell(bed, report, rounds.breaks, witness, ledger, losses)
        accounts.settle(bed, report, answering=jobs.ANSWERING, entering=None)
    return report


def _admit(cluster: Cluster, networks: list[Namespace]) -> None:
    """Let the server hear who comes from these networks."""
    with (cluster.directory / "data/pg_hba.conf").open("a") as file:
        file.writelines(f"host all all {network.inside}/32 trust\n" for network in networks)
    with psycopg.connect(cluster.url(), autocommit=True) as connection:
        connection.execute("SELECT pg_reload_conf()")


def _through(url: str, network: Namespace) -> str:
    """The database as it is reached from within this network."""
    parts = urlsplit(url)
    return parts._replace(netloc=f"postgres@{network.host}:{parts.port}").geturl()


def main(argv: list[str]) -> int:
    """Run it; 0 if no bar was missed."""
    parser = argparse.ArgumentParser(prog="just prove partitions", description=__doc__)
    parser.add_argument("--short", action="store_true", help=f"{SHORT:,} losses")
    parser.add_argument("--seed", type=int, default=secrets.randbelow(1_000_000))
    parser.add_argument("--losses", type=int, help=f"how many, instead of {FULL:,} or {SHORT:,}")
    parser.add_argument("--bug", help="a bug of proof/mutations for all workers, to see it caught")
    options = parser.parse_args(argv)
    losses = options.losses or (SHORT if options.short else FULL)
    return tried(
        lambda: prove(losses=losses, seed=options.seed, bug=options.bug),
        _DIRECTORY.with_suffix(".json"),
        short=options.short,
        bug=options.bug,
    )
