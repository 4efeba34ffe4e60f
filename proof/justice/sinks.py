"""Where a worker's log goes: a pipe or a socket whose reader can stop reading, or a full disk."""

from __future__ import annotations

import array
import fcntl
import os
import socket
import sys
import termios
import threading
from typing import TYPE_CHECKING

from proof.crash.fleet import Place

if TYPE_CHECKING:
    from pathlib import Path

PIPE, SOCKET, FULL = "pipe", "socket", "full disk"
KINDS = (PIPE, SOCKET, FULL)
_INTO_FILE = 'exec "$@" >"$0" 2>&1'
_INTO_SOCKET = (
    "import os, socket, sys; s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); "
    "os.dup2(s.fileno(), 1); os.dup2(s.fileno(), 2); os.execvp(sys.argv[2], sys.argv[2:])"
)
_CHUNK = 1 << 16
_KEPT = 2 << 20
# A line of 10 KB does not fit any more.
_FULL_FROM = (1 << 16) - 10_000
_LOOK = 0.05


class Sink:
    """One log, read by a thread that keeps its end in a file, until the reader stalls."""

    def __init__(self, kind: str, directory: Path, name: str) -> None:
        self.kind = kind
        self._path = directory / f"{name}.sink"
        self._kept = directory / f"{name}.kept"
        self._stalled = threading.Event()
        self._over = threading.Event()
        self._fd = -1
        self._tail = b""
        directory.mkdir(parents=True, exist_ok=True)
        if kind == PIPE:
            os.mkfifo(self._path)
            # For writing too: the pipe stays open between two workers.
            self._fd = os.open(self._path, os.O_RDWR | os.O_NONBLOCK)
        elif kind == SOCKET:
            self._listener = socket.socket(socket.AF_UNIX)
            self._listener.bind(str(self._path))
            self._listener.listen()
            self._listener.settimeout(_LOOK)
        self._thread = threading.Thread(target=self._read, name=f"log {name}", daemon=True)
        self._thread.start()

    @property
    def place(self) -> Place:
        """Where a worker runs that logs into this."""
        if self.kind == SOCKET:
            return Place((sys.executable, "-c", _INTO_SOCKET, str(self._path)))
        path = "/dev/full" if self.kind == FULL else str(self._path)
        return Place(("/bin/sh", "-c", _INTO_FILE, path))

    def stall(self) -> None:
        """Stop reading; the writer finds its pipe full soon."""
        self._stalled.set()

    @property
    def is_full(self) -> bool:
        """Whether the writer has to wait by now, or cannot write at all."""
        if self.kind == FULL:
            return True
        if self._fd < 0:
            return False
        waiting = array.array("i", [0])
        fcntl.ioctl(self._fd, termios.FIONREAD, waiting)
        return waiting[0] >= _FULL_FROM

    def close(self) -> None:
        """End the thread and keep what was read last."""
        self._over.set()
        self._thread.join(5)
        if self._fd >= 0:
            os.close(self._fd)
        if self.kind == SOCKET:
            self._listener.close()
        self._kept.write_bytes(self._tail)

    def _read(self) -> None:
        while not self._over.wait(0 if self.kind != FULL else _LOOK):
            if (
                self._stalled.is_set()
                or self.kind == FULL
                or (self.kind == SOCKET and self._fd < 0)
            ):
                self._accept_or_wait()
                continue
            try:
                data = os.read(self._fd, _CHUNK)
            except BlockingIOError:
                self._over.wait(0.005)
                continue
            if not data and self.kind == SOCKET:
                os.close(self._fd)
                self._fd = -1
            self._tail = (self._tail + data)[-_KEPT:]

    def _accept_or_wait(self) -> None:
        if self.kind != SOCKET or self._fd >= 0:
            self._over.wait(_LOOK)
            return
        try:
            connection, _ = self._listener.accept()
        except TimeoutError:
            return
        connection.setblocking(False)
        self._fd = connection.detach()
