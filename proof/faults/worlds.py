"""Which nemeses go together, on which kind of server."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from proof.faults.nemeses import clocks, disks, network, releases, server, signals
from support.clocks import Clock
from support.cluster import DURABLE, Cluster
from support.disk import Disk

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import ExitStack
    from random import Random

    from proof.faults.nemeses.base import Nemesis

_SETTINGS = {"max_connections": "400", "max_wal_size": "4GB", **DURABLE}
_LIGHT: tuple[type[Nemesis], ...] = (
    network.Resets,
    network.CutCommits,
    network.CutAnswers,
    network.CutClient,
    server.TerminateBackends,
)
_PLAIN: tuple[type[Nemesis], ...] = (
    *_LIGHT,
    signals.KillChild,
    signals.KillWorker,
    signals.StopWorker,
    signals.StopChild,
    signals.SuspendAll,
    signals.Freeze,
    signals.Deploy,
    signals.KillClient,
    signals.Starve,
    network.Silence,
    network.HalfOpen,
    network.Delay,
    network.Narrow,
    network.SilenceClient,
    server.KillServer,
    server.RestartServer,
    server.PinHorizon,
    server.Convoy,
    clocks.WorkerClock,
    releases.OtherVersion,
)
# What leases are for, and no more: small runs are struck by each of them.
_LEASES: tuple[type[Nemesis], ...] = (
    signals.KillWorker,
    signals.StopWorker,
    signals.SuspendAll,
    signals.Deploy,
    server.KillLocked,
)
# A disk of this many megabytes holds a run's rows and log, and is soon filled.
_SMALL = 1500


@dataclass(frozen=True, slots=True)
class Ground:
    """A server that is up, and the faults that its users can meet."""

    cluster: Cluster
    nemeses: list[Nemesis]
    true_clock: bool = True
    # How far apart strikes are, in seconds.
    light_every: tuple[float, float] = (0.25, 0.75)
    heavy_every: tuple[float, float] = (2.0, 5.0)
    # How many workers there are, and what each can hold.
    posts: int = 3
    slots: int = 16

    def only(self, names: Sequence[str]) -> list[Nemesis]:
        """Those with these names."""
        if unknown := set(names) - {nemesis.name for nemesis in self.nemeses}:
            raise SystemExit(f"no such nemesis in this world: {', '.join(unknown)}")
        return [nemesis for nemesis in self.nemeses if nemesis.name in names]

    def choose(self, rng: Random, heavy: int = 6) -> list[Nemesis]:
        """Some of them, by the seed: all that are light, a few that are not."""
        light = [nemesis for nemesis in self.nemeses if nemesis.light]
        rest = [nemesis for nemesis in self.nemeses if not nemesis.light]
        return [*light, *rng.sample(rest, min(heavy, len(rest)))]


def _plain(stack: ExitStack) -> Ground:
    cluster = stack.enter_context(Cluster(15, settings=_SETTINGS))
    return Ground(cluster, [kind() for kind in _PLAIN])


def _leases(stack: ExitStack) -> Ground:
    cluster = stack.enter_context(Cluster(15, settings=_SETTINGS))
    return Ground(
        cluster,
        [kind() for kind in _LEASES],
        light_every=(1.0, 3.0),
        heavy_every=(1.0, 4.0),
        posts=2,
        slots=5,
    )


def _clock(stack: ExitStack) -> Ground:
    """No process is killed here: a lease that was granted ten minutes ahead is not waited for."""
    clock = stack.enter_context(Clock())
    cluster = Cluster(15, settings=_SETTINGS, environment=clock.environment)
    stack.enter_context(cluster)
    gentle: tuple[type[Nemesis], ...] = (
        signals.Deploy,
        network.Delay,
        server.PinHorizon,
        clocks.WorkerClock,
    )
    nemeses = [clocks.ServerClock(clock), *(kind() for kind in gentle)]
    return Ground(cluster, nemeses, true_clock=False)


def _disk(stack: ExitStack) -> Ground:
    disk = stack.enter_context(Disk(_SMALL))
    small = _SETTINGS | {"max_wal_size": "200MB", "min_wal_size": "80MB"}
    cluster = stack.enter_context(Cluster(15, settings=small, parent=disk.path))
    usual: tuple[type[Nemesis], ...] = (*_LIGHT, signals.KillWorker, server.KillServer)
    return Ground(cluster, [disks.DiskFull(disk), *(kind() for kind in usual)])


# `leases` is small and close: the seeded bugs are looked for in it.
WORLDS: dict[str, Callable[[ExitStack], Ground]] = {
    "plain": _plain,
    "clock": _clock,
    "disk": _disk,
    "leases": _leases,
}
