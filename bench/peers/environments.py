"""Where the peers live: an environment each, made once, from the project's locks."""

from __future__ import annotations

import platform
import shutil
import subprocess
import sys
import threading
import tomllib
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

_STORES: Mapping[str, Store] = {
    "celery": "redis",
    "dramatiq": "redis",
    "rq": "redis",
    "arq": "redis",
}


def _groups(project: Path) -> dict[str, tuple[Store, Sequence[str]]]:
    """The queues that a project names, with the store and the packages of each."""
    groups = tomllib.loads((project / "pyproject.toml").read_text())["dependency-groups"]
    return {name: (_STORES.get(name, "postgresql"), wanted) for name, wanted in groups.items()}


PYTHON: Mapping[str, tuple[Store, Sequence[str]]] = _groups(_ROOT / "bench")
# Not measured; `just prove peers` runs the crash tests with them.
UNMEASURED: Mapping[str, tuple[Store, Sequence[str]]] = _groups(_ROOT / "proof")
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
    lock = _ROOT / ("bench" if name in PYTHON else "proof") / "locks" / f"{name}.lock"
    locked = lock.exists()
    wanted = "\n".join((sys.version, lock.read_text() if locked else "", *packages))
    what = ("--require-hashes", "--requirements", str(lock)) if locked else packages
    # Two tests of one queue may come at the same time.
    with _making:
        if not _made(home, wanted):
            shutil.rmtree(home, ignore_errors=True)
            _run("uv", "venv", "--quiet", "--python", sys.executable, str(home))
            _run("uv", "pip", "install", "--quiet", "--python", str(python), *what)
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
        output = " ".join((done.stderr or done.stdout).split())
        raise _NotInstalled(output[-400:])
