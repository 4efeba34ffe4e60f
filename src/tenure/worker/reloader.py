"""Seeing that a project's code has changed, by looking at its files. Loads none of it."""

import asyncio
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

_LOOK = 0.4
# Of the time, what may be spent on looking.
_SHARE = 0.05
_NOT_OURS = {"__pycache__", "node_modules", "site-packages"}


class FileWatcher:
    """The Python files under a directory: what has changed since the last look."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._seen = dict(_files(directory))
        self.took: float = 0.0

    def poll(self) -> set[str]:
        """The files that were changed, made or removed since the last look."""
        started = time.monotonic()
        seen = dict(_files(self._directory))
        changed = {path for path, _ in self._seen.items() ^ seen.items()}
        self._seen = seen
        self.took = time.monotonic() - started
        return changed

    async def wait_until_stable(self) -> set[str]:
        """Return what has changed once something has and nothing more does: whoever saves many
        files means one change."""
        changed: set[str] = set()
        while True:
            await asyncio.sleep(max(_LOOK, self.took / _SHARE))
            more = await asyncio.to_thread(self.poll)
            if changed and not more:
                return changed
            changed |= more


async def watch_files(changes: FileWatcher, act: Callable[[], None]) -> None:
    """Act after each change since the first look; never ends by itself."""
    while True:
        await changes.wait_until_stable()
        act()


def _files(directory: Path) -> Iterator[tuple[str, tuple[int, int, int]]]:
    """Each Python file with what tells one state of it from another. Left out is what people do
    not edit: hidden directories, virtual environments, packages."""
    waiting = [str(directory)]
    while waiting:
        try:
            entries = list(os.scandir(waiting.pop()))
        except OSError:
            continue
        if any(entry.name == "pyvenv.cfg" for entry in entries):
            continue
        for entry in entries:
            try:
                if entry.is_dir(follow_symlinks=False):
                    if entry.name not in _NOT_OURS and not entry.name.startswith("."):
                        waiting.append(entry.path)
                elif entry.name.endswith(".py"):
                    status = entry.stat()
                    yield entry.path, (status.st_mtime_ns, status.st_size, status.st_ino)
            except OSError:
                continue
