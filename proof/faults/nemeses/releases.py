"""Two releases at work on one database."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

from proof.faults.nemeses.base import Nemesis
from support import versions

if TYPE_CHECKING:
    from proof.faults.crew import Post
    from proof.faults.harness import Bed

# The first commit whose schema is the one first migration. Later ones must run next to it.
LAST_RELEASE = "e236a623ae1263a06287fa4fcf7acce55427e0c7"
_PATH = "PYTHONPATH"
_UP_WITHIN = 30.0


class OtherVersion(Nemesis):
    """A worker drains, and one of the other release takes its post. Others may strike it on the
    way there."""

    name = "worker replaced by one of another release"
    _post: Post
    _path: str | None
    _arrived: bool

    def strike(self, bed: Bed) -> float | None:
        post = bed.unharmed()
        if post is None:
            return None
        old = versions.fetch(LAST_RELEASE).environment
        post.environment = {} if post.environment else old
        post.dismiss(signal.SIGTERM)
        self._post, self._arrived = post, False
        self._path = post.environment.get(_PATH, os.environ.get(_PATH))
        return _UP_WITHIN

    def look(self, bed: Bed) -> bool:
        self._arrived = any(one.get(_PATH) == self._path for one in bed.at_work(self._post))
        return self._arrived

    def relieve(self, bed: Bed) -> int:
        del bed
        return int(self._arrived)
