"""Rules for changing stored jobs: which arguments are accepted, and what the audit log keeps.

A page, a route and a command show marks in place of secrets and sealed data. A mark that comes back
as an argument would destroy the value that it stands for, so it is refused. The values it stands
for are not filled in either: a caller who can't see a secret could otherwise send it elsewhere, by
changing the arguments around it.
"""

import json
from collections.abc import Mapping

from tenure._model.edit import EditableJob, JobChanges
from tenure._model.ids import Json
from tenure._rules import payload
from tenure._rules.redaction import Redactor, first_mark
from tenure._rules.sealing import SEALED_KEY, is_sealed
from tenure.errors import InvalidValue, PayloadError

# In a job's meta: the job that it runs again.
RERUN_OF = "rerun_of"
# Audit rows have no retention, so they don't keep large arguments.
MAX_AUDITED = 8 * 1024


def check(changes: JobChanges) -> None:
    if changes == JobChanges():
        raise InvalidValue(
            "an edit must change something: give args, priority, run_at, max_attempts, timeout or "
            "tags"
        )
    if changes.tags is not None and (mark := first_mark(list(changes.tags))):
        raise InvalidValue(
            f"tags must not contain {mark}, which stands for a hidden value; write the real tags"
        )


def check_args(args: object) -> None:
    """Reject arguments that aren't an object, can't be stored, or were copied from a view."""
    if not isinstance(args, Mapping):
        raise PayloadError(f'args must be a mapping, got {args!r}; write {{"name": "Ada"}}')
    payload.encode(dict(args))
    if SEALED_KEY in args:
        raise PayloadError(
            f"args must not have the name {SEALED_KEY}, which marks sealed arguments; pass the "
            "arguments themselves"
        )
    if mark := first_mark(args):
        raise PayloadError(
            f"args must not contain {mark}, which stands for a hidden value; write all arguments "
            "with their real values"
        )


def meta_changes(changes: JobChanges) -> dict[str, Json] | None:
    """Return the fields of a job's meta that change, or None."""
    fields: dict[str, Json] = {}
    if changes.timeout is not None:
        fields["timeout"] = changes.timeout.total_seconds()
    if changes.tags is not None:
        fields["tags"] = list(changes.tags)
    return fields or None


def audited(
    job: EditableJob, changes: JobChanges, args: Json, redactor: Redactor
) -> tuple[Json, Json]:
    """Return the fields that change, before and after. Secrets in them are redacted.

    `args` are the new arguments as they are stored, or None.
    """
    meta: Mapping[str, Json] = job.meta or {}
    before: dict[str, Json] = {}
    after: dict[str, Json] = {}
    fields: dict[str, tuple[Json, Json]] = {
        "priority": (job.priority, changes.priority),
        "run_at": (job.run_at.isoformat(), changes.run_at and changes.run_at.isoformat()),
        "max_attempts": (job.max_attempts, changes.max_attempts),
        **{name: (meta.get(name), value) for name, value in (meta_changes(changes) or {}).items()},
    }
    for name, (was, now) in fields.items():
        if now is not None and was != now:
            before[name], after[name] = was, now
    if args is not None and args != job.args:
        before["args"], after["args"] = _changed(job.args, args)
    known = redactor.values([job.args, args, before, after])
    return _bounded(redactor.value(before, known)), _bounded(redactor.value(after, known))


def _changed(old: Json, new: Json) -> tuple[Json, Json]:
    """Return the arguments that differ. Sealed ones can't be compared."""
    if is_sealed(old) or is_sealed(new) or not isinstance(old, dict):
        return old, new
    return (
        {name: value for name, value in old.items() if name not in new or new[name] != value},
        {name: value for name, value in new.items() if name not in old or old[name] != value},
    )


def _bounded(fields: dict[str, Json]) -> dict[str, Json] | None:
    """Return audited fields with a size in place of large arguments."""
    size = len(json.dumps(fields.get("args"), ensure_ascii=False).encode())
    if size > MAX_AUDITED:
        fields = {**fields, "args": f"{size:,} bytes of JSON"}
    return fields or None
