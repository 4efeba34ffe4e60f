"""The ledger of effects outside any job's transaction, on a server of its own that no cut reaches:
one row for each, with that server's clock. Both servers are on one machine and share its clock."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

import psycopg
from psycopg.pq import TransactionStatus

if TYPE_CHECKING:
    from datetime import datetime

    from support.cluster import Cluster
    from tenure import AsyncJob, Job

VARIABLE = "PROOF_EFFECTS"
TABLE = """
CREATE TABLE effect (
    job_id bigint NOT NULL,
    token bigint NOT NULL,
    at timestamptz NOT NULL DEFAULT clock_timestamp()
)
"""
_LEAVE = "INSERT INTO effect (job_id, token) VALUES (%s, %s)"
_LAST = "SELECT job_id, token, max(at) FROM effect GROUP BY job_id, token"
_kept = threading.local()


def address(cluster: Cluster) -> str:
    """Where the ledger is: a Unix socket, which no network namespace hides."""
    return psycopg.conninfo.make_conninfo(
        host=str(cluster.directory), port=cluster.port, user="postgres", dbname="postgres"
    )


def prepare(where: str) -> None:
    """Make the ledger."""
    with psycopg.connect(where, autocommit=True) as connection:
        connection.execute(TABLE)


def leave(job: Job | AsyncJob) -> None:
    """Leave one effect. From a thread with a connection of its own: what is raised into a thread
    may break what it is doing."""
    connection: psycopg.Connection[tuple[object, ...]] | None = getattr(_kept, "connection", None)
    if connection is None or connection.info.transaction_status is not TransactionStatus.IDLE:
        connection = psycopg.connect(os.environ[VARIABLE], autocommit=True)
        _kept.connection = connection
    connection.execute(_LEAVE, [job.id, job.fence], prepare=True)


def last(where: str) -> dict[tuple[int, int], datetime]:
    """The last effect of each running period."""
    with psycopg.connect(where, autocommit=True) as connection:
        return {(job, token): at for job, token, at in connection.execute(_LAST)}


def count(where: str) -> int:
    """How many there are."""
    with psycopg.connect(where, autocommit=True) as connection:
        row = connection.execute("SELECT count(*) FROM effect").fetchone()
        return int(row[0]) if row else 0
