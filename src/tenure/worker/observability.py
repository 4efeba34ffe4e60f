"""Write a worker's state file, and serve `/metrics` and `/healthz`.

The HTTP server responds from memory, in a process that runs no handlers. It closes each connection
after one response, or without a response if the request is too long or too slow.
"""

import asyncio
import json
import os
import socket
import stat
from collections import Counter
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from time import time
from typing import Any, NamedTuple

from tenure import _metrics
from tenure._clock import boottime
from tenure._metrics import CONTENT_TYPE, MetricsPage
from tenure._runtime.in_processes import ENDS
from tenure._services.base import log
from tenure._settings import run_directory
from tenure.errors import ConfigError
from tenure.worker.child_process import ChildProcess

_WITHIN = 5.0
_LONGEST = 8192
_AT_ONCE = 32
_BACKLOG = 2048
_STATUS_TEXT = {200: "OK", 404: "Not Found", 405: "Method Not Allowed", 503: "Service Unavailable"}


class HealthResponse(NamedTuple):
    status: int
    kind: str
    text: str


def open_socket(
    host: str, port: int, *, options: str = "--metrics-host or --metrics-port"
) -> socket.socket:
    """Open a listening socket. On failure, a ConfigError names the options that set its address."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        on = socket.create_server((host, port), family=family, backlog=_BACKLOG)
    except OSError as error:
        raise ConfigError(
            f"cannot listen on {host} port {port}: {error.strerror}; choose another with "
            f"{options}, or stop the program that uses it"
        ) from error
    # A response is written in two parts, and without this option the second would wait 40 ms for an
    # ACK of the first. asyncio sets it only if the socket specifies its protocol, and this one
    # doesn't.
    on.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return on


@asynccontextmanager
async def serve_health(
    on: socket.socket | None, *, metrics: Callable[[], str], health: Callable[[], HealthResponse]
) -> AsyncIterator[None]:
    if on is None:
        yield
        return
    listener = _HealthServer(
        {"/metrics": lambda: HealthResponse(200, CONTENT_TYPE, metrics())} | {"/healthz": health}
    )
    server = await asyncio.start_server(listener.serve, sock=on, limit=_LONGEST)
    host, port = on.getsockname()[:2]
    log.info("serving metrics at http://%s:%d/metrics", f"[{host}]" if ":" in host else host, port)
    try:
        yield
    finally:
        server.close()


class _HealthServer:
    def __init__(self, paths: dict[str, Callable[[], HealthResponse]]) -> None:
        self._paths = paths
        self._open = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open += 1
        try:
            if self._open <= _AT_ONCE:
                async with asyncio.timeout(_WITHIN):
                    head = await reader.readuntil(b"\r\n\r\n")
                    writer.write(self._answer(head))
                    await writer.drain()
        except (TimeoutError, OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass
        finally:
            self._open -= 1
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    def _answer(self, head: bytes) -> bytes:
        method, _, rest = head.partition(b" ")
        path = rest.partition(b" ")[0].partition(b"?")[0].decode("ascii", errors="replace")
        if path not in self._paths:
            answer = HealthResponse(404, "text/plain", "not found: use /metrics or /healthz\n")
        elif method not in (b"GET", b"HEAD"):
            answer = HealthResponse(405, "text/plain", "method not allowed: use GET or HEAD\n")
        else:
            answer = self._paths[path]()
        body = answer.text.encode(errors="replace")
        lines = [
            f"HTTP/1.1 {answer.status} {_STATUS_TEXT[answer.status]}",
            f"Content-Type: {answer.kind}",
            f"Content-Length: {len(body)}",
            "Connection: close",
        ]
        return "\r\n".join([*lines, "", ""]).encode() + (b"" if method == b"HEAD" else body)


# A child's counters and their metrics.
_COUNTERS = {
    "lost": _metrics.WORKER_LOST,
    "rescued": _metrics.WORKER_RESCUED,
    "claims": _metrics.WORKER_CLAIMS,
    "claimed": _metrics.WORKER_CLAIMED,
    "renewed": _metrics.WORKER_RENEWED,
    "late": _metrics.WORKER_LATE,
    "ticks": _metrics.WORKER_TICKS,
    "tick_jobs": _metrics.WORKER_TICK_JOBS,
}
_GAUGES = {
    "slots": _metrics.WORKER_SLOTS,
    "running": _metrics.WORKER_RUNNING,
    "leases": _metrics.WORKER_LEASES,
}
Counts = Mapping[str, Any]


class WorkerMetrics:
    """Counters that outlive their children."""

    def __init__(self) -> None:
        self._began_at = time()
        self._gone: Counter[tuple[str, ...]] = Counter()
        self._ended: Counter[str] = Counter()

    def keep(self, counts: Counts, *, how: str) -> None:
        self._gone.update(_flat(counts))
        self._ended[how] += 1

    def page(self, children: Iterable[Counts], *, wanted: int, draining: bool) -> str:
        living = list(children)
        page = MetricsPage()
        page.put(_metrics.WORKER_STARTED_AT, self._began_at)
        page.put(_metrics.WORKER_DRAINING, draining)
        page.put(_metrics.WORKER_CHILDREN, len(living))
        page.put(_metrics.WORKER_WANTED, wanted)
        for how in {"drained", "crashed", *self._ended}:
            page.put(_metrics.WORKER_CHILDREN_ENDED, self._ended[how], how)
        for name, metric in _GAUGES.items():
            page.put(metric, sum(counts.get(name, 0) for counts in living))
        heartbeats = [
            counts["last_heartbeat_at"] for counts in living if counts.get("last_heartbeat_at")
        ]
        if heartbeats:
            page.put(_metrics.WORKER_HEARTBEAT, max(boottime() - min(heartbeats), 0.0))
        counted = self._gone.copy()
        counted.update({("processes", why): 0 for why in ENDS})
        for counts in living:
            counted.update(_flat(counts))
        _counters(page, counted)
        return page.text()


def _flat(counts: Counts) -> Counter[tuple[str, ...]]:
    flat: Counter[tuple[str, ...]] = Counter()
    for name in _COUNTERS:
        flat[name,] = counts.get(name, 0)
    for service, errors in counts.get("errors", {}).items():
        flat["errors", service] = errors
    for why, count in counts.get("processes", {}).items():
        flat["processes", why] = count
    for task, count in counts.get("started", {}).items():
        flat["started", task] = count
    for task, outcomes in counts.get("ended", {}).items():
        for outcome, count in outcomes.items():
            flat["ended", task, outcome] = count
    return flat


def _counters(page: MetricsPage, counted: Mapping[tuple[str, ...], int]) -> None:
    for name, metric in _COUNTERS.items():
        page.put(metric, counted.get((name,), 0))
    labelled = {
        "errors": _metrics.WORKER_ERRORS,
        "processes": _metrics.WORKER_PROCESSES_ENDED,
        "started": _metrics.WORKER_JOBS_STARTED,
        "ended": _metrics.WORKER_JOBS_ENDED,
    }
    for (name, *labels), count in sorted(counted.items()):
        if name in labelled:
            page.put(labelled[name], count, *labels)


# A thread without a heartbeat for this long counts as stuck.
_FRESH = 10.0
# A worker without a working child for this long is unhealthy.
_PATIENCE = 60.0
# The longest gap between two checks that counts as silence, in case the machine was suspended.
_LONGEST_GAP = 3.0


@dataclass(slots=True)
class WorkerHealth:
    working: int = 0
    none_for: float = 0.0
    trouble: str = ""
    # How the last child crashed.
    last_end: str = ""
    _looked_at: float = field(default_factory=boottime)

    @property
    def is_healthy(self) -> bool:
        return self.none_for < _PATIENCE

    def update(self, children: Collection[ChildProcess], now: float, *, draining: bool) -> None:
        """Check the children. A draining worker stays healthy until it ends."""
        self.working = sum(works(child, now) for child in children)
        gap = min(now - self._looked_at, _LONGEST_GAP)
        self.none_for = 0.0 if self.working or draining else self.none_for + gap
        self._looked_at = now
        self.trouble = "" if self.working or draining else self._why(children, now)

    def response(self, facts: dict[str, Any], *, is_watched: bool) -> tuple[int, dict[str, Any]]:
        body = {"status": "live", **facts, "working": self.working}
        if not is_watched:
            reason = "the parent process has stopped checking its children"
            return 503, body | {"status": "stuck", "reason": reason}
        if not self.is_healthy:
            reason = f"no child has worked for {self.none_for:.0f} s: {self.trouble}"
            return 503, body | {"status": "not working", "reason": reason}
        return 200, body

    def _why(self, children: Collection[ChildProcess], now: float) -> str:
        for child in children:
            seconds = now - child.started_at
            if child.database is None and (seconds >= _FRESH or not self.last_end):
                return f"child {child.number} has been loading the app for {seconds:.0f} s"
            blocked = now - child.heartbeats.loop
            if child.heartbeats.loop and blocked >= _FRESH:
                return (
                    f"the event loop of child {child.number} has been blocked for {blocked:.0f} s"
                )
        return self.last_end or "no child is running"


def works(child: ChildProcess, now: float) -> bool:
    # A child waiting for the database has no service thread yet.
    loop, service = child.heartbeats
    return (
        child.database is not None
        and now - loop < _FRESH
        and (not service or now - service < _FRESH)
    )


class StateFile:
    """A worker's state file. Write errors are ignored."""

    def __init__(self, *, name: str, wanted: int) -> None:
        self._name = name
        self._wanted = wanted
        self._path: Path | None = None

    def write(self, *, now: float, children: int, draining: bool, health: "WorkerHealth") -> None:
        state = {
            "pid": os.getpid(),
            "name": self._name,
            "state": "draining" if draining else "active",
            "last_heartbeat_at": now,
            "children": children,
            "working": health.working,
            "wanted": self._wanted,
            # Seconds without a working child, and why.
            "none_working_for": round(health.none_for, 3),
            "trouble": health.trouble,
        }
        with suppress(OSError):
            path = self._path or self._place()
            draft = path.with_suffix(".new")
            # The directory may be in /tmp: don't follow another user's symlink.
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
            with os.fdopen(os.open(draft, flags, 0o600), "w") as file:
                file.write(json.dumps(state))
            draft.replace(path)

    def remove(self) -> None:
        if self._path is not None:
            with suppress(OSError):
                self._path.unlink()

    def _place(self) -> Path:
        directory = run_directory()
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = directory.lstat()
        if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid():
            raise PermissionError(f"{directory} belongs to another user")
        self._path = directory / f"{os.getpid()}.json"
        return self._path
