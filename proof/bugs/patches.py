"""Mistakes in Python, made in memory: each patches the running process."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import TYPE_CHECKING

# What a patch changes is imported when it is applied: programs of the last release load this too.
if TYPE_CHECKING:
    from tenure._services.renewer import Renewer
    from tenure._services.rescuer import Rescuer
    from tenure.worker.core import Core


def take_a_cancelled_wait_as_success() -> None:
    """The warning of a commit that stopped waiting for its standby is not looked at."""
    from tenure._store.postgres import sessions  # noqa: PLC0415 - as told above

    sessions.is_unconfirmed = lambda diagnostic: False  # noqa: ARG005 - that is the mistake


def sweep_only_above_the_floor() -> None:
    """A sweep never goes back below its floor, which begins at the worker's start."""
    from tenure._services import rescuer  # noqa: PLC0415 - as told above

    sound = rescuer.Rescuer.tick

    async def tick(self: Rescuer) -> int:
        self._from_zero_at = math.inf
        self._floor = self._floor or datetime.now(UTC) - self._lag
        return await sound(self)

    rescuer.Rescuer.tick = tick  # type: ignore[method-assign]  # that is what a patch is


def stop_renewing_to_drain() -> None:
    """Draining begins with an end to all renewals."""
    from tenure._services import renewer  # noqa: PLC0415 - as told above
    from tenure.worker import core  # noqa: PLC0415 - as told above

    sound = core.Core.drain

    async def nothing(self: Renewer) -> int:
        del self
        return 0

    async def drain(self: Core, grace: float) -> bool:
        renewer.Renewer.tick = nothing  # type: ignore[method-assign]  # that is what a patch is
        return await sound(self, grace)

    core.Core.drain = drain  # type: ignore[method-assign]  # that is what a patch is
