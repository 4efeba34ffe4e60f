"""Where the peers live: an environment each, made once, by names and versions alone."""

from __future__ import annotations

import platform
import shutil
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_HERE = Path(__file__).parent
_ROOT = _HERE.parent.parent
_CACHE = _ROOT / ".cache" / "bench" / "peers"
_making = threading.Lock()
_INSTALL_WITHIN = 600.0

Store = Literal["postgresql", "redis"]

# What is installed for each; the rest of what they need is as of the same day.
PYTHON: Mapping[str, tuple[Store, Sequence[str]]] = {
    "pgqueuer": ("postgresql", ["pgqueuer==1.6.0", "asyncpg==0.32.0", "uvloop==0.23.0"]),
    "chancy": ("postgresql", ["chancy==0.26.0", "psycopg[binary]==3.3.8"]),
    "procrastinate": ("postgresql", ["procrastinate==3.10.0", "psycopg[binary]==3.3.8"]),
    "saq": ("postgresql", ["saq[postgres]==0.26.4", "psycopg[binary]==3.3.8"]),
    "celery": ("redis", ["celery[redis]==5.7.0", "redis==8.1.0"]),
    "dramatiq": ("redis", ["dramatiq[redis]==2.2.1", "redis==8.1.0"]),
    "oban": ("postgresql", ["oban"]),
}
# Not measured; `just prove peers` asks them what becomes of a job.
UNMEASURED: Mapping[str, tuple[Store, Sequence[str]]] = {
    "rq": ("redis", ["rq==2.12.0", "redis==8.1.0"]),
    "arq": ("redis", ["arq==0.28.0", "redis==5.3.1"]),
}
NODE = ("pg-boss", "graphile-worker")  # Their versions are in node/package.json.


@dataclass(frozen=True, slots=True)
class Peer:
    """A peer that can be run: `command` and a verb."""

    name: str
    command: Sequence[str]
    store: Store


@dataclass(frozen=True, slots=True)
class Unavailable:
    """A peer that cannot, and what the installer said."""

    name: str
    reason: str


class _NotInstalled(Exception):
    """The message is the installer's."""


def peers(names: Sequence[str] | None = None) -> list[Peer | Unavailable]:
    """Those named, or all, installed if they are not yet."""
    return [_peer(name) for name in names or (*PYTHON, *NODE)]


def python(name: str) -> Path | Unavailable:
    """The Python of a peer's environment, which is made if it is not there yet."""
    try:
        return _python(name, {**PYTHON, **UNMEASURED}[name][1])
    except _NotInstalled as error:
        return Unavailable(name, str(error))


def _peer(name: str) -> Peer | Unavailable:
    try:
        if name in NODE:
            return Peer(name, [str(_node()), str(_CACHE / "node" / f"{name}.mjs")], "postgresql")
        store, packages = PYTHON[name]
        python = _python(name, packages)
    except _NotInstalled as error:
        return Unavailable(name, str(error))
    # Its program sees `bench.peers`, but neither Tenure nor what Tenure stands on.
    return Peer(
        name, ["env", f"PYTHONPATH={_ROOT}", str(python), "-m", f"bench.peers.{name}"], store
    )


def _python(name: str, packages: Sequence[str]) -> Path:
    home = _CACHE / name
    python = home / "bin" / "python"
    wanted = "\n".join((sys.version, *packages))
    # Two tests of one queue may come at the same time.
    with _making:
        if not _made(home, wanted):
            shutil.rmtree(home, ignore_errors=True)
            _run("uv", "venv", "--quiet", "--python", sys.executable, str(home))
            _run("uv", "pip", "install", "--quiet", "--python", str(python), *packages)
            (home / "made").write_text(wanted)
    return python


def _node() -> Path:
    """The Node of the lock; the programs are copied beside what they import."""
    home = _CACHE / "node"
    home.mkdir(parents=True, exist_ok=True)
    for file in (_HERE / "node").iterdir():
        if file.is_file():
            shutil.copy(file, home)
    wanted = (home / "package-lock.json").read_text()
    if not _made(home, wanted):
        # npm itself runs on an older Node, and would warn of it.
        words = ["--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
        _run("npm", "ci", "--prefix", str(home), *words)
        (home / "made").write_text(wanted)
    machine = {"x86_64": "x64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
    return home / "node_modules" / f"node-linux-{machine}" / "bin" / "node"


def _made(home: Path, wanted: str) -> bool:
    made = home / "made"
    return made.exists() and made.read_text() == wanted


def _run(*command: str) -> None:
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_INSTALL_WITHIN, check=False
        )
    except (FileNotFoundError, subprocess.TimeoutExpired) as error:
        raise _NotInstalled(str(error)) from error
    if done.returncode:
        said = " ".join((done.stderr or done.stdout).split())
        raise _NotInstalled(said[-400:])
