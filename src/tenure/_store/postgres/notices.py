"""Rules for notices, the errors that notices quote, and events that services see."""

from collections.abc import Mapping, Sequence
from datetime import timedelta

from tenure._model.audit import By
from tenure._model.ids import JobId, Json
from tenure._model.notice import (
    DeadLetterError,
    DeclaredNoticeRules,
    NewNoticeRule,
    NoticeEvent,
    NoticeFormat,
    NoticeRule,
)
from tenure._rules.notices import check_rule
from tenure._store.postgres.statements import Jsonb, QueryBase
from tenure._store.steps import Op, Row, atomic
from tenure.errors import InvalidValue


class NoticeQueries(QueryBase):
    @atomic
    def add(self, rule: NewNoticeRule, by: By) -> Op[NoticeRule]:
        """Store a rule. Raise InvalidValue if its name is taken."""
        check_rule(rule)
        rows = yield self._query(
            "add_notice_rule",
            name=rule.name,
            event=rule.event,
            queue=rule.queue,
            task=rule.task,
            url=rule.url,
            format=rule.format,
            secret=rule.secret,
            group_for=rule.group_for,
            threshold=rule.threshold,
            created_by=by.actor,
        )
        if not rows:
            raise InvalidValue(
                f"name must be new, got {rule.name!r}, which another notice rule has; choose "
                "another name, or remove that rule first"
            )
        yield from self._audit(by, "notice.add", [f"notice:{rule.name}"], after=_audited(rule))
        return _rule(rows[0])

    def list(self, names: Sequence[str] | None = None) -> Op[Sequence[NoticeRule]]:
        rows = yield self._query("notice_rules", names=None if names is None else list(names))
        return [_rule(row) for row in rows]

    @atomic
    def remove(self, names: Sequence[str], by: By) -> Op[Sequence[bool]]:
        """Delete rules. Return for each whether it existed."""
        rows = yield self._query("remove_notice_rules", names=list(names))
        removed = {row["name"]: row for row in rows}
        changes = [(f"notice:{name}", _audited(_rule(removed[name])), None) for name in removed]
        yield from self._audit_changes(by, "notice.remove", changes)
        return [name in removed for name in names]

    @atomic
    def test(self, name: str, by: By) -> Op[JobId | None]:
        """Enqueue a test of a rule. Return its job, or None if the rule doesn't exist."""
        rows = yield self._query("notice_test", rule=name, channel=self.channel)
        if not rows:
            return None
        job_id = JobId(rows[0]["id"])
        yield from self._audit(by, "notice.test", [f"notice:{name}"], after={"job": job_id})
        return job_id

    @atomic
    def declare(
        self, program: str, version: Sequence[int], rules: Sequence[NewNoticeRule]
    ) -> Op[DeclaredNoticeRules]:
        """Sync a program's rules with what its code declares."""
        ordered = sorted(rules, key=lambda rule: rule.name)
        for rule in ordered:
            check_rule(rule)
        rows = yield self._query(
            "declare_notice_rules",
            names=[rule.name for rule in ordered],
            events=[rule.event for rule in ordered],
            queues=[rule.queue for rule in ordered],
            tasks=[rule.task for rule in ordered],
            urls=[rule.url for rule in ordered],
            formats=[rule.format for rule in ordered],
            secrets=[rule.secret for rule in ordered],
            group_fors=[rule.group_for for rule in ordered],
            thresholds=[rule.threshold for rule in ordered],
            program=program,
            program_version=list(version),
        )
        outcomes = {row["name"]: row["outcome"] for row in rows}
        by = By(program, "code", f"version {'.'.join(map(str, version))}" if version else None)
        by_name = {rule.name: rule for rule in ordered}
        yield from self._audit_changes(
            by,
            "notice.declare",
            [
                (f"notice:{name}", None, _audited(by_name[name]) if name in by_name else None)
                for name, outcome in outcomes.items()
                if outcome in ("made", "changed", "removed")
            ],
        )
        found = {
            wanted: tuple(sorted(name for name, outcome in outcomes.items() if outcome == wanted))
            for wanted in ("made", "changed", "removed", "refused")
        }
        return DeclaredNoticeRules(**found)

    def error(self, ids: Sequence[int]) -> Op[DeadLetterError | None]:
        """Return the error of the first of these jobs that is still a dead letter, or None."""
        rows = yield self._query("notice_error", ids=list(ids))
        if not rows:
            return None
        row = rows[0]
        return DeadLetterError(
            JobId(row["id"]), row["error_type"], row["error_message"], row["error_signature"]
        )

    def report(self, event: NoticeEvent, facts: Sequence[Mapping[str, Json]]) -> Op[int]:
        """Add events that a service has seen. Return the number of notices that they belong to."""
        rows = yield self._query("notice_add", event=event, facts=Jsonb(list(facts)))
        added: int = rows[0]["added"]
        return added

    def report_lost_workers(self, silent_for: timedelta) -> Op[int]:
        """Report workers that have sent no heartbeat for this long, each once."""
        rows = yield self._query("notice_lost_workers", silent_for=silent_for)
        return rows[0]["added"] if rows else 0


def _rule(row: Row) -> NoticeRule:
    return NoticeRule(
        **{**row, "event": NoticeEvent(row["event"]), "format": NoticeFormat(row["format"])}
    )


def _audited(rule: NewNoticeRule | NoticeRule) -> Json:
    return {
        "event": str(rule.event),
        "queue": rule.queue,
        "task": rule.task,
        "url": rule.url,
        "format": str(rule.format),
        "secret_name": rule.secret,
        "group_for": rule.group_for.total_seconds(),
        "threshold": None if rule.threshold is None else rule.threshold.total_seconds(),
    }
