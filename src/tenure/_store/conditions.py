"""What every store can tell a doctor. A part of the port."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import timedelta

    from tenure._model.condition import (
        Condition,
        Drift,
        LateUpkeep,
        LockedJob,
        NotifyQueue,
        Unkept,
    )
    from tenure._store.port import Op


class ConditionStore(Protocol):
    """How the server, the schema and this session's rights are."""

    def condition(self) -> Op[Condition]:
        """What an operator should know of the server: version, role, settings, its clock."""

    def rights(self, role: str) -> Op[Sequence[str]]:
        """The statements that grant this role what its programs need and it does not have."""

    def drift(self) -> Op[Sequence[Drift]]:
        """Where the schema is not as this release has it."""

    def late_upkeep(self) -> Op[LateUpkeep]:
        """What upkeep should have done by now."""

    def notify_queue(self) -> Op[NotifyQueue]:
        """How full the server's queue of notifications is."""

    def locked(
        self, queues: Sequence[str], older_than: timedelta, *, count: int
    ) -> Op[Sequence[LockedJob]]:
        """Jobs of these queues that have been due for longer than this and that claims pass over,
        because a transaction as old has their row locked."""

    def unkept(self) -> Op[Unkept]:
        """Which of our tables are not vacuumed as they should be."""
