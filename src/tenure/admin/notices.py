"""Commands for the rules that make notices."""

from collections.abc import Sequence
from typing import Final

from tenure._model.audit import By
from tenure._model.ids import JobId
from tenure._model.notice import NoticeRule
from tenure._rules.notices import new_rule
from tenure._store.steps import Op
from tenure.admin._commands import AdminCommand, AsyncTwin, CommandGroup
from tenure.task import Seconds


class Notices(CommandGroup):
    """Notice commands: `app.admin.notices`."""

    @AdminCommand
    def add(
        self,
        name: str,
        event: str,
        by: By,
        *,
        secret: str,
        url: str | None = None,
        queue: str = "*",
        task: str = "*",
        format: str = "standard",  # noqa: A002 - the name that users know
        group_for: Seconds | None = None,
        threshold: Seconds | None = None,
    ) -> Op[NoticeRule]:
        """Add a rule: each event that it matches makes a notice, grouped by cause.

        Args:
            name: A name for the rule.
            event: `"failed"`, `"queue_behind"`, `"schedule_missed"` or `"worker_lost"`.
            by: Who is doing this and why, for the audit log.
            secret: The name of the secret that signs notices. Workers have its value. For
                `"slack"` it is the webhook's URL, for `"pagerduty"` the routing key.
            url: The receiver (default for `"pagerduty"`: its Events API). `None` for `"slack"`.
            queue: Only this queue, or a prefix such as `mail*` (default: all).
            task: Only this task, or a prefix (default: all).
            format: `"standard"`, `"slack"` or `"pagerduty"` (default: `"standard"`).
            group_for: Make at most one notice per cause in this time (default: 5 min).
            threshold: How long the oldest job of a queue has waited, for `"queue_behind"`.

        Returns:
            The rule.

        Raises:
            InvalidValue: A value is invalid, or another rule has this name.
        """
        rule = new_rule(
            name,
            event,
            secret=secret,
            url=url,
            queue=queue,
            task=task,
            format=format,
            group_for=group_for,
            threshold=threshold,
        )
        return self._store.notices.add(rule, by)

    aadd: Final = AsyncTwin(add)

    @AdminCommand
    def list(self) -> Op[Sequence[NoticeRule]]:
        """List the rules, by name.

        Returns:
            The rules.
        """
        return self._store.notices.list()

    alist: Final = AsyncTwin(list)  # noqa: A003 - the command above

    @AdminCommand
    def test(self, name: str, by: By) -> Op[JobId | None]:
        """Enqueue a test notice to a rule's receiver.

        Args:
            name: The rule's name.
            by: Who is doing this and why, for the audit log.

        Returns:
            The id of its job, or None if the rule does not exist.
        """
        return self._store.notices.test(name, by)

    atest: Final = AsyncTwin(test)

    @AdminCommand
    def remove(self, names: Sequence[str], by: By) -> Op[Sequence[bool]]:
        """Remove rules. Queued notices of a removed rule are not sent.

        Args:
            names: The rules' names.
            by: Who is doing this and why, for the audit log.

        Returns:
            False for each rule that doesn't exist.
        """
        return self._store.notices.remove(names, by)

    aremove: Final = AsyncTwin(remove)
