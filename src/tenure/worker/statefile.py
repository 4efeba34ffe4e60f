"""The word that a worker leaves for `tenure probe`: a small file, rewritten every second."""

import json
import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from tenure.sources import run_directory

if TYPE_CHECKING:
    from tenure.worker.health import Health


class StateFile:
    """One worker's file. Where it cannot be written, the worker goes on without."""

    def __init__(self, *, name: str, wanted: int) -> None:
        self._name = name
        self._wanted = wanted
        self._path: Path | None = None

    def write(self, *, now: float, children: int, draining: bool, health: "Health") -> None:
        """Say how the worker stands."""
        state = {
            "pid": os.getpid(),
            "name": self._name,
            "state": "draining" if draining else "active",
            "beat_at": now,
            "children": children,
            "working": health.working,
            "wanted": self._wanted,
            # Seconds, and why.
            "none_working_for": round(health.none_for, 3),
            "trouble": health.trouble,
        }
        with suppress(OSError):
            path = self._path or self._place()
            draft = path.with_suffix(".new")
            # The directory may be in /tmp: nobody else's link is followed.
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
            with os.fdopen(os.open(draft, flags, 0o600), "w") as file:
                file.write(json.dumps(state))
            draft.replace(path)

    def remove(self) -> None:
        """Leave nothing behind."""
        if self._path is not None:
            with suppress(OSError):
                self._path.unlink()

    def _place(self) -> Path:
        directory = run_directory()
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = directory.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
            raise PermissionError(f"{directory} is somebody else's")
        self._path = directory / f"{os.getpid()}.json"
        return self._path
