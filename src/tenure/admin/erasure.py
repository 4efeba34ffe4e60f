"""Erase what is stored about a person: their jobs, and everything that belongs to those jobs."""

import secrets
from typing import Final

from tenure._model.audit import By
from tenure._model.operation import Erasure, NewErasure
from tenure._model.selector import Selector
from tenure._rules.erasure import SALT
from tenure._rules.operations import DEFAULT_RATE
from tenure._store.steps import Op
from tenure.admin._commands import AdminCommand, AsyncTwin, CommandGroup, as_dry_run
from tenure.admin.search import checked


class ErasureCommands(CommandGroup):
    """The command that erases jobs."""

    @AdminCommand
    def erase(
        self,
        selector: Selector | str,
        by: By,
        *,
        rate: int = DEFAULT_RATE,
        dry_run: bool = False,
    ) -> Op[Erasure]:
        """Erase all jobs that currently match, in every state, up to 1,000,000.

        This deletes the jobs with their items, keys and stored responses, and the matching
        schedules. It also clears the text fields of their attempts and audit rows. Workers run the
        erasure as an operation. Running jobs are asked to stop, and are erased once they finish.
        An erasure can't be undone.

        Args:
            selector: A `Selector`, or a selector string. It must have a tag, a key, an argument or
                an id, and may have a queue and a task.
            by: Who is doing this and why, for the audit log. The reason is required.
            rate: How many jobs to erase per second (default: 500).
            dry_run: Only count the rows (default: False).

        Returns:
            The operation, and the number of rows by table.

        Raises:
            InvalidValue: The selector or rate is invalid, or the reason is missing.
        """
        new = NewErasure(selector=checked(selector), salt=secrets.token_bytes(SALT), rate=rate)
        started = self._store.erasures.start(new, by)
        return (yield from (as_dry_run(started) if dry_run else started))

    aerase: Final = AsyncTwin(erase)
