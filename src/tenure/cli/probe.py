"""`tenure probe`: check that this user's workers on this machine are healthy.

It reads their state files. It imports only the standard library, `_settings`, `errors` and
`output`, so it responds within milliseconds.
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
    """`tenure probe` options."""

    name: str | None = None
    as_json: bool = False


class ProbedWorker(NamedTuple):
    """A worker, according to its state file and `/proc`. `age` is its last heartbeat's age."""

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
        """Whether its last heartbeat is too old."""
        return self.age > _STALE

    @property
    def idle(self) -> bool:
        """Whether it has been too long since any of its children worked."""
        return self.none_working_for >= _NONE_WORKING

    @property
    def healthy(self) -> bool:
        """Whether it sends heartbeats and has a working child."""
        return not self.stale and not self.idle


def read_options(arguments: list[str]) -> ProbeOptions | None:
    """Parse simple arguments. Return None to leave help and mistakes to the full command line."""
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


def probe(options: ProbeOptions) -> Exit:
    """Print one line if the workers here are healthy, or an error if one of them isn't.

    The state files of dead workers count only if no worker is alive.
    """
    directory = run_directory()
    known, unread = seen(directory)
    workers = [worker for worker in known if options.name in (None, worker.name)]
    living = [worker for worker in workers if worker.alive]
    healthy = bool(living) and all(worker.healthy for worker in living)
    if options.as_json:
        shown = [worker._asdict() for worker in workers]
        print(json.dumps({"healthy": healthy, "directory": str(directory), "workers": shown}))
    elif healthy:
        print("; ".join(_line(worker) for worker in living))
    if healthy:
        return Exit.DONE
    print_error(*_trouble(directory, options.name, workers, unread))
    return Exit.FAILED


def seen(directory: Path) -> tuple[list[ProbedWorker], list[str]]:
    """Return the workers with state files here, by pid, and an error for each unreadable file."""
    now = time.clock_gettime(time.CLOCK_BOOTTIME)
    workers, unread = [], []
    for file in directory.glob("*.json"):
        try:
            workers.append(_worker(json.loads(file.read_text()), now))
        except FileNotFoundError:
            continue
        except (OSError, ValueError, TypeError, KeyError) as error:
            unread.append(f"{file} cannot be read: {error}")
    return sorted(workers), unread


def _worker(state: dict[str, Any], now: float) -> ProbedWorker:
    last_heartbeat_at = float(state["last_heartbeat_at"])
    return ProbedWorker(
        pid=int(state["pid"]),
        name=str(state["name"]),
        state=str(state["state"]),
        age=round(now - last_heartbeat_at, 3),
        children=int(state["children"]),
        # Older releases don't write these fields.
        working=int(state.get("working", state["children"])),
        wanted=int(state["wanted"]),
        none_working_for=float(state.get("none_working_for", 0.0)),
        trouble=str(state.get("trouble", "")),
        # A heartbeat in the future was written before a reboot.
        alive=last_heartbeat_at <= now + 1 and _alive(int(state["pid"]), last_heartbeat_at),
    )


def _alive(pid: int, last_heartbeat_at: float) -> bool:
    """Return whether the process is still running, rather than a later one with the same pid."""
    try:
        # The name in parentheses may contain spaces. The fields after it do not.
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
            f"worker {idle.name} has no working child",
            f"none has worked for {idle.none_working_for:.0f} s: {idle.trouble}",
            "see its log, fix the cause, and restart it",
        )
    if living:
        stuck = next(worker for worker in living if worker.stale)
        return (
            f"worker {stuck.name} is stuck",
            f"pid {stuck.pid} is running, but its last heartbeat was {stuck.age:.0f} s ago",
            "see its log, and restart it; other workers take its jobs when their leases expire",
        )
    if workers:
        last = min(workers, key=lambda worker: worker.age)
        return (
            "no worker runs here",
            f"{last.name} (pid {last.pid}) is dead; it left its state file in {directory}",
            "see its log, and start it again: tenure worker module:app",
        )
    return (
        "no worker runs here",
        unread[0] if unread else f"there is no state file of {whose} in {directory}",
        "start one: tenure worker module:app; if one runs, set TENURE_RUN_DIR as it does",
    )
