"""Watch a project's Python files for changes, without importing them."""

import asyncio
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

_LOOK = 0.4
# The fraction of time that polling may take.
_SHARE = 0.05
_NOT_OURS = {"__pycache__", "node_modules", "site-packages"}


class FileWatcher:
    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._seen = dict(_files(directory))
        self.took: float = 0.0

    def poll(self) -> set[str]:
        started = time.monotonic()
        seen = dict(_files(self._directory))
        changed = {path for path, _ in self._seen.items() ^ seen.items()}
        self._seen = seen
        self.took = time.monotonic() - started
        return changed

    async def wait_until_stable(self) -> set[str]:
        """Wait for changes, and return them once they stop."""
        changed: set[str] = set()
        while True:
            await asyncio.sleep(max(_LOOK, self.took / _SHARE))
            more = await asyncio.to_thread(self.poll)
            if changed and not more:
                return changed
            changed |= more


async def watch_files(changes: FileWatcher, act: Callable[[], None]) -> None:
    while True:
        await changes.wait_until_stable()
        act()


def _files(directory: Path) -> Iterator[tuple[str, tuple[int, int, int]]]:
    """List Python files with their state, skipping hidden directories, virtualenvs and packages."""
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
