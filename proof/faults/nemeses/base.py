"""What a nemesis is to the run that lets it loose."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar

from proof.faults.jobs import LEASE

if TYPE_CHECKING:
    from proof.faults.crew import Post
    from proof.faults.harness import Bed

# Past the lease, so that it is lost; and not so long that a run is nothing but waiting.
PAST_THE_LEASE = (1.2 * LEASE, 2 * LEASE)


class Nemesis(ABC):
    """One way to break something. `light` ones come often: they cost a reconnection or less. A
    `gentle` one takes no lease from a worker. A strike that broke nothing does not count."""

    name: ClassVar[str]
    light: ClassVar[bool] = False
    gentle: ClassVar[bool] = False

    @abstractmethod
    def strike(self, bed: Bed) -> float | None:
        """Break it; for how many seconds it stays broken. None if there was nothing to break."""

    def look(self, bed: Bed) -> bool:
        """See what comes of it, again and again while it is in force; True once it need not last
        any longer. That the server does not answer is nothing to be told of."""
        del bed
        return False

    def relieve(self, bed: Bed) -> int:
        """Fix it; return how many faults it caused."""
        del bed
        return 1

    def finish(self, bed: Bed) -> None:
        """Leave the world so that all jobs can end; called once, after the last of it."""
        del bed


class AtAPost(Nemesis):
    """Strikes one worker, and leaves it to itself until it is fixed."""

    post: Post

    def strike(self, bed: Bed) -> float | None:
        """Choose a post to which nothing else is being done."""
        post = bed.unharmed()
        if post is None:
            return None
        self.post = post
        lasts = self.harm(bed)
        post.struck = lasts is not None
        return lasts

    @abstractmethod
    def harm(self, bed: Bed) -> float | None:
        """Break something at `self.post`."""

    def relieve(self, bed: Bed) -> int:
        """Fix it, and let others have their turn."""
        self.post.struck = False
        return self.restore(bed)

    def restore(self, bed: Bed) -> int:
        """Undo what `harm` did; return how many faults it caused."""
        del bed
        return 1
