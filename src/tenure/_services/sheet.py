"""What a child has counted, in memory that it shares with its parent: read without asking it, and
still there when it was killed."""

import json
import mmap
import os
import struct
from contextlib import suppress
from typing import Any

# Written into the half that is not in force, and then put in force by one byte: whoever reads
# finds a whole one, also of a child that was killed while it wrote.
_HALF = 512 * 1024
_SIZE = 8 + 2 * _HALF
_LENGTH = struct.Struct("=I")


class Sheet:
    """One child's sheet. Written by the child, read by the parent."""

    def __init__(self, fd: int) -> None:
        self._memory = mmap.mmap(fd, _SIZE)
        self._last: dict[str, Any] = {}

    @staticmethod
    def make() -> int:
        """The descriptor of new shared memory, to be inherited by the child. What is not written to
        takes no room."""
        fd = os.memfd_create("tenure-sheet")
        os.ftruncate(fd, _SIZE)
        return fd

    def write(self, counts: dict[str, Any]) -> None:
        """Put these counts in the place of the last ones; too many to fit leave the last."""
        text = json.dumps(counts, ensure_ascii=False).encode(errors="replace")
        if len(text) > _HALF - _LENGTH.size:
            return
        half = 1 - self._memory[0]
        at = 8 + half * _HALF
        _LENGTH.pack_into(self._memory, at, len(text))
        self._memory[at + _LENGTH.size : at + _LENGTH.size + len(text)] = text
        self._memory[0] = half

    def read(self) -> dict[str, Any]:
        """The last counts; empty before the first."""
        at = 8 + self._memory[0] * _HALF
        [length] = _LENGTH.unpack_from(self._memory, at)
        text = self._memory[at + _LENGTH.size : at + _LENGTH.size + min(length, _HALF)]
        # It is broken only if two were written while this was read.
        with suppress(ValueError):
            self._last = json.loads(text) if length else self._last
        return self._last

    def close(self) -> None:
        """Let go of the memory."""
        self._memory.close()
