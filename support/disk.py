"""A small disk that can be full: a file system of its own on a loop device. Wants root."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from types import TracebackType

_MEGABYTE = 2**20
_WITHIN = 60.0


class Disk:
    """An ext4 of this many megabytes, mounted at `path` while it is in use.

    End what writes on it first. It is unmounted lazily if something still has files open
    there; its loop device then goes when the last of them is closed.
    """

    def __init__(self, megabytes: int) -> None:
        self._megabytes = megabytes
        self._undo = ExitStack()
        self._path: Path | None = None

    def __enter__(self) -> Self:
        with ExitStack() as undo:
            directory = Path(tempfile.mkdtemp(prefix="tenure-disk-"))
            undo.callback(shutil.rmtree, directory)
            directory.chmod(0o755)  # a server runs as a user of its own
            image, path = directory / "image", directory / "mounted"
            with image.open("wb") as file:
                file.truncate(self._megabytes * _MEGABYTE)
            # Nothing is kept back for root: full is full for everybody.
            _run("mkfs.ext4", "-q", "-F", "-m", "0", str(image))
            path.mkdir()
            # The device is detached by the kernel when it is unmounted.
            _run("mount", "-o", "loop", str(image), str(path))
            undo.callback(_run, "umount", "--lazy", str(path))
            path.chmod(0o1777)
            self._path = path
            self._undo = undo.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._path = None
        self._undo.close()

    @property
    def path(self) -> Path:
        """Where it is mounted; anybody may make files there."""
        assert self._path is not None, "use it in a with statement"  # noqa: S101 - a slip
        return self._path

    @property
    def left(self) -> int:
        """How many bytes are free."""
        there = os.statvfs(self.path)
        return there.f_bavail * there.f_frsize

    def fill(self) -> None:
        """Leave nothing free."""
        handle = os.open(self._filler, os.O_WRONLY | os.O_CREAT)
        try:
            # What others write or free meanwhile is taken in a further turn.
            for _ in range(100):
                if not (left := self.left):
                    return
                try:
                    os.posix_fallocate(handle, os.fstat(handle).st_size, left)
                except OSError:
                    # Some of it went to the file's own map.
                    self._fill_by_blocks(handle)
        finally:
            os.close(handle)

    def free(self) -> None:
        """Give back what `fill` took."""
        self._filler.unlink(missing_ok=True)

    @property
    def _filler(self) -> Path:
        return self.path / "filler"

    def _fill_by_blocks(self, handle: int) -> None:
        block = os.statvfs(self.path).f_frsize
        for _ in range(self.left // block + 1):
            try:
                os.posix_fallocate(handle, os.fstat(handle).st_size, block)
            except OSError:
                return


def _run(*command: str) -> None:
    done = subprocess.run(
        command,
        check=False,
        capture_output=True,
        text=True,
        timeout=_WITHIN,
        env={**os.environ, "PATH": f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"},
    )
    if done.returncode:
        raise OSError(f"{' '.join(command)} failed: {done.stderr.strip()}")
