"""`tenure probe`: whether a worker of this user is alive here. Reads its state file, no more.

Standard library, the path and the words only: it answers in a few milliseconds of its own.
"""

import json
import os
import time
from pathlib import Path
from typing import Any, NamedTuple

from tenure._settings import run_directory
from tenure.cli.errors import Exit
from tenure.cli.output import print_error, safe

_STALE = 10.0
_NONE_WORKING = 60.0


class ProbeOptions(NamedTuple):
    """What the command line wants to know."""

    name: str | None = None
    as_json: bool = False


class ProbedWorker(NamedTuple):
    """A worker as its state file and the kernel tell of it. `age` is that of its last heartbeat."""

    pid: int
    name: str
    state: str
    age: float
    children: int
    working: int
    wanted: int
    none_working_for: float
    trouble: str
    alive: bool

    @property
    def stale(self) -> bool:
        """Whether it has not beaten for too long."""
        return self.age > _STALE

    @property
    def idle(self) -> bool:
        """Whether none of its children has worked for too long."""
        return self.none_working_for >= _NONE_WORKING

    @property
    def healthy(self) -> bool:
        """Whether it sends heartbeats, and a child of it works."""
        return not self.stale and not self.idle


def read_options(arguments: list[str]) -> ProbeOptions | None:
    """What plain arguments ask; None leaves help and mistakes to the full command line."""
    name, as_json = None, False
    rest = iter(arguments)
    for argument in rest:
        if argument == "--json":
            as_json = True
        elif argument == "--name":
            name = next(rest, None)
            if name is None:
                return None
        elif argument.startswith("--name="):
            name = argument.removeprefix("--name=")
        else:
            return None
    return ProbeOptions(name, as_json)


def probe(asked: ProbeOptions) -> Exit:
    """Say in one line that the workers here are well, or in three that they are not.

    What a worker that ended left behind does not matter beside one that lives.
    """
    directory = run_directory()
    found, unread = seen(directory)
    workers = [worker for worker in found if asked.name in (None, worker.name)]
    living = [worker for worker in workers if worker.alive]
    healthy = bool(living) and all(worker.healthy for worker in living)
    if asked.as_json:
        shown = [worker._asdict() for worker in workers]
        print(json.dumps({"healthy": healthy, "directory": str(directory), "workers": shown}))
    elif healthy:
        print("; ".join(_line(worker) for worker in living))
    if healthy:
        return Exit.DONE
    print_error(*_trouble(directory, asked.name, workers, unread))
    return Exit.FAILED


def seen(directory: Path) -> tuple[list[ProbedWorker], list[str]]:
    """The workers that have a state file in this directory, by pid; and what cannot be read."""
    now = time.clock_gettime(time.CLOCK_BOOTTIME)
    found, unread = [], []
    for file in directory.glob("*.json"):
        try:
            told = json.loads(file.read_text())
            found.append(_worker(told, now))
        except FileNotFoundError:
            continue
        except (OSError, ValueError, TypeError, KeyError) as error:
            unread.append(f"{file} cannot be read: {error}")
    return sorted(found), unread


def _worker(told: dict[str, Any], now: float) -> ProbedWorker:
    last_heartbeat_at = float(told["last_heartbeat_at"])
    return ProbedWorker(
        pid=int(told["pid"]),
        name=str(told["name"]),
        state=str(told["state"]),
        age=round(now - last_heartbeat_at, 3),
        children=int(told["children"]),
        # A worker of an older release says nothing of these.
        working=int(told.get("working", told["children"])),
        wanted=int(told["wanted"]),
        none_working_for=float(told.get("none_working_for", 0.0)),
        trouble=str(told.get("trouble", "")),
        # A heartbeat ahead of the clock is from before the machine was restarted.
        alive=last_heartbeat_at <= now + 1 and _alive(int(told["pid"]), last_heartbeat_at),
    )


def _alive(pid: int, last_heartbeat_at: float) -> bool:
    """Whether the process of that heartbeat still runs, and not a later one under its number."""
    try:
        # The name, in parentheses, may hold spaces; what follows it does not.
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return False
    started_at = int(fields[19]) / os.sysconf("SC_CLK_TCK")
    return fields[0] not in "ZX" and started_at <= last_heartbeat_at


def _line(worker: ProbedWorker) -> str:
    return (
        f"{safe(worker.name)}: {safe(worker.state)}, {worker.working} of {worker.wanted} children"
        f" working, last heartbeat {worker.age:.1f} s ago"
    )


def _trouble(
    directory: Path, name: str | None, workers: list[ProbedWorker], unread: list[str]
) -> tuple[str, str, str]:
    whose = "a worker" if name is None else f"a worker named {name}"
    living = [worker for worker in workers if worker.alive]
    if living and not any(worker.stale for worker in living):
        idle = next(worker for worker in living if worker.idle)
        return (
            f"no child of worker {idle.name} works",
            f"none has for {idle.none_working_for:.0f} s: {idle.trouble}",
            "see its log, fix the cause, and restart it",
        )
    if living:
        stuck = next(worker for worker in living if worker.stale)
        return (
            f"worker {stuck.name} is stuck",
            f"pid {stuck.pid} runs, but has not beaten for {stuck.age:.0f} s",
            "see its log, and restart it; its jobs go to others when their leases end",
        )
    if workers:
        last = min(workers, key=lambda worker: worker.age)
        return (
            "no worker runs here",
            f"{last.name} (pid {last.pid}) is gone; it left its state file in {directory}",
            "see its log for the reason, and start it again: tenure worker module:app",
        )
    return (
        "no worker runs here",
        unread[0] if unread else f"there is no state file of {whose} in {directory}",
        "start one: tenure worker module:app; if one runs, give the probe its TENURE_RUN_DIR",
    )
