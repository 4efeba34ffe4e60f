"""Deduplication key commands."""

from typing import Final

from tenure._model.audit import By
from tenure._model.results import FreeResult
from tenure._rules.payload import check_key, check_name
from tenure._store.steps import Op
from tenure.admin._commands import AdminCommand, AsyncTwin, CommandGroup


class DeduplicationKeys(CommandGroup):
    """Deduplication key commands: `app.admin.keys`."""

    @AdminCommand
    def free(self, task: str, key: str, by: By) -> Op[FreeResult]:
        """Free a key early, so that the next enqueue with it creates a new job.

        A queued or running job keeps its key. Cancel it first.

        Args:
            task: The task's name.
            key: The deduplication key.
            by: Who is doing this and why, for the audit log.

        Returns:
            The result, and the job that holds or held the key.

        Raises:
            InvalidValue: `task` or `key` is invalid.
        """
        check_name(task, "task")
        check_key(key, "key")
        return self._store.job_commands.free_key(task, key, by)

    afree: Final = AsyncTwin(free)
