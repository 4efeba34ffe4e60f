"""Two releases at work on one database."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

from proof.faults.nemeses.base import AtAPost
from support import versions
from support.processes import send

if TYPE_CHECKING:
    from proof.faults.bed import Bed

# v0.1.0, by its commit: a clone need not have the tags.
LAST_RELEASE = "c5d9fb36c0232466ad30339631a99f71225625fc"


class OtherVersion(AtAPost):
    """A worker drains, and one of the other release takes its post."""

    name = "worker replaced by one of another release"

    def harm(self, bed: Bed) -> float | None:
        del bed
        old = versions.fetch(LAST_RELEASE).environment
        self.post.environment = {} if self.post.environment else old
        send(self.post.parent, signal.SIGTERM)
        return 0.0
