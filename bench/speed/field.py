"""Who takes part: the bare loop, Tenure in its ways, and the peers that could be installed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bench.peers import environments
from bench.speed.contender import Contender, bare, tenure

if TYPE_CHECKING:
    from collections.abc import Sequence

BATCHES = (100, 500)
NAMES = {
    "pgqueuer": "PgQueuer",
    "chancy": "Chancy",
    "procrastinate": "Procrastinate",
    "saq": "SAQ on PostgreSQL",
    "celery": "Celery on Redis",
    "dramatiq": "Dramatiq on Redis",
    "oban": "Oban",
}


@dataclass(frozen=True)
class Entry:
    """A contender in one of its ways, under the name that tables show."""

    name: str
    contender: Contender
    children: int = 1


def bares(batches: Sequence[int] = BATCHES) -> list[Entry]:
    return [Entry(f"bare loop, batches of {batch}", bare(batch)) for batch in batches]


def ours() -> list[Entry]:
    return [
        Entry("Tenure", tenure()),
        Entry("Tenure, 2 children", tenure(), children=2),
        Entry("Tenure, no middleware or listener", tenure(plain=True)),
        Entry("Tenure, thread handlers", tenure("noop_thread")),
        Entry("Tenure, process handlers", tenure("noop_process")),
    ]


def peers() -> tuple[list[Entry], dict[str, str]]:
    """The peers that are there, and of the others why they are not."""
    there, absent = [], {}
    for peer in environments.peers():
        name = NAMES.get(peer.name, peer.name)
        if isinstance(peer, environments.Unavailable):
            absent[name] = peer.reason
        else:
            redis = peer.store == "redis"
            there.append(Entry(name, Contender(name, peer.command, redis=redis)))
    return there, absent
