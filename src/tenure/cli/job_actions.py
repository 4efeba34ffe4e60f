"""`tenure job retry`, `cancel`, `revoke`, `hold`, `resume`, `move`, `delete`: many, each answered
for."""

from collections.abc import Sequence
from typing import Annotated, NamedTuple

import typer

from tenure.cli.errors import Exit
from tenure.cli.options import (
    AnyJobNumbers,
    AsJson,
    DatabaseUrl,
    DryRun,
    JobNumbers,
    Reason,
    SchemaName,
    Who,
    actor,
    connect_admin,
    instant,
)
from tenure.cli.output import print_error, print_json, print_note, print_table
from tenure.cli.selectors import (
    ByFilter,
    OperationOptions,
    Rate,
    Yes,
    run_operation,
    selector_or_ids,
)

_WHY = {
    "not_failed": "no dead letter has this id",
    "key_held": "a younger job has the key",
    "not_live": "nothing queued or running has this id",
    "not_queued": "nothing queued has this id",
    "not_running": "nothing running has this id",
    "not_held": "nothing held has this id",
    "live": "it is queued or running; cancel it first",
    "not_found": "no job has this id",
}


class ActionAnswer(NamedTuple):
    """What became of one job; `holder` is the job that has the key, if that is why not."""

    id: int
    answer: str
    holder: int | None = None


def retry(
    ids: AnyJobNumbers = None,
    *,
    said: ByFilter = None,
    rate: Rate = 500,
    yes: Yes = False,
    reason: Reason = None,
    dry_run: DryRun = False,
    who: Who = None,
    as_json: AsJson = False,
    database_url: DatabaseUrl = None,
    schema: SchemaName = None,
) -> int:
    """Bring dead letters back for a new life: attempts and losses are counted from zero."""
    selector, named = selector_or_ids(ids, said), ids or []
    asked = OperationOptions(actor(who, reason), rate, yes, dry_run, as_json)
    with connect_admin(database_url, schema) as admin:
        if selector is not None:
            return run_operation(admin, "retry", selector, asked)
        came = admin.retry(named, asked.by, dry_run=dry_run)
    answers = [
        ActionAnswer(job_id, str(one.answer), one.holder)
        for job_id, one in zip(named, came, strict=True)
    ]
    return _report(answers, as_json=as_json, dry_run=dry_run)


def cancel(
    ids: AnyJobNumbers = None,
    *,
    said: ByFilter = None,
    rate: Rate = 500,
    yes: Yes = False,
    reason: Reason = None,
    dry_run: DryRun = False,
    who: Who = None,
    as_json: AsJson = False,
    database_url: DatabaseUrl = None,
    schema: SchemaName = None,
) -> int:
    """End queued jobs at once; ask the holders of running ones to end them."""
    selector, named = selector_or_ids(ids, said), ids or []
    asked = OperationOptions(actor(who, reason), rate, yes, dry_run, as_json)
    with connect_admin(database_url, schema) as admin:
        if selector is not None:
            return run_operation(admin, "cancel", selector, asked)
        came = admin.cancel(named, asked.by, dry_run=dry_run)
    answers = [ActionAnswer(job_id, str(one)) for job_id, one in zip(named, came, strict=True)]
    return _report(answers, as_json=as_json, dry_run=dry_run)


def revoke(
    ids: JobNumbers,
    *,
    reason: Reason = None,
    dry_run: DryRun = False,
    who: Who = None,
    as_json: AsJson = False,
    database_url: DatabaseUrl = None,
    schema: SchemaName = None,
) -> int:
    """Take running jobs from their holders at once and end them as cancelled."""
    with connect_admin(database_url, schema) as admin:
        came = admin.revoke(ids, actor(who, reason), dry_run=dry_run)
    answers = _answers(ids, came, "revoked", "not_running")
    return _report(answers, as_json=as_json, dry_run=dry_run)


def hold(
    ids: JobNumbers,
    *,
    reason: Reason = None,
    dry_run: DryRun = False,
    who: Who = None,
    as_json: AsJson = False,
    database_url: DatabaseUrl = None,
    schema: SchemaName = None,
) -> int:
    """Keep queued jobs from being claimed until they are resumed."""
    with connect_admin(database_url, schema) as admin:
        came = admin.hold(ids, actor(who, reason), dry_run=dry_run)
    answers = _answers(ids, came, "held", "not_queued")
    return _report(answers, as_json=as_json, dry_run=dry_run)


def resume(
    ids: JobNumbers,
    *,
    reason: Reason = None,
    dry_run: DryRun = False,
    who: Who = None,
    as_json: AsJson = False,
    database_url: DatabaseUrl = None,
    schema: SchemaName = None,
) -> int:
    """Let held jobs go on, in their old place."""
    with connect_admin(database_url, schema) as admin:
        came = admin.resume(ids, actor(who, reason), dry_run=dry_run)
    answers = _answers(ids, came, "resumed", "not_held")
    return _report(answers, as_json=as_json, dry_run=dry_run)


def move(
    ids: AnyJobNumbers = None,
    *,
    queue: Annotated[
        str | None, typer.Option("-q", "--queue", metavar="NAME", help="To this queue.")
    ] = None,
    priority: Annotated[
        int | None, typer.Option("--priority", min=0, max=9, help="9 is the most urgent.")
    ] = None,
    run_at: Annotated[
        str | None,
        typer.Option("--run-at", metavar="INSTANT", help="Due then, at the earliest now."),
    ] = None,
    said: ByFilter = None,
    rate: Rate = 500,
    yes: Yes = False,
    reason: Reason = None,
    dry_run: DryRun = False,
    who: Who = None,
    as_json: AsJson = False,
    database_url: DatabaseUrl = None,
    schema: SchemaName = None,
) -> int:
    """Give queued jobs another queue, priority or time; one that keeps its time keeps its age."""
    from tenure.admin import Changes

    due = instant(run_at)
    selector, named = selector_or_ids(ids, said), ids or []
    asked = OperationOptions(actor(who, reason), rate, yes, dry_run, as_json)
    with connect_admin(database_url, schema) as admin:
        if selector is not None:
            changes = Changes(queue=queue, priority=priority, run_at=due)
            return run_operation(admin, "move", selector, asked, changes=changes)
        came = admin.move(
            named, asked.by, queue=queue, priority=priority, run_at=due, dry_run=dry_run
        )
    answers = _answers(named, came, "moved", "not_queued")
    return _report(answers, as_json=as_json, dry_run=dry_run)


def delete(
    ids: AnyJobNumbers = None,
    *,
    said: ByFilter = None,
    rate: Rate = 500,
    yes: Yes = False,
    reason: Reason = None,
    dry_run: DryRun = False,
    who: Who = None,
    as_json: AsJson = False,
    database_url: DatabaseUrl = None,
    schema: SchemaName = None,
) -> int:
    """Delete ended jobs for good, with their items and the keys that they still have."""
    selector, named = selector_or_ids(ids, said), ids or []
    asked = OperationOptions(actor(who, reason), rate, yes, dry_run, as_json)
    with connect_admin(database_url, schema) as admin:
        if selector is not None:
            return run_operation(admin, "delete", selector, asked)
        came = admin.delete(named, asked.by, dry_run=dry_run)
    answers = [ActionAnswer(job_id, str(one)) for job_id, one in zip(named, came, strict=True)]
    return _report(answers, as_json=as_json, dry_run=dry_run)


def _answers(ids: list[int], came: Sequence[bool], done: str, undone: str) -> list[ActionAnswer]:
    return [
        ActionAnswer(job_id, done if yes else undone) for job_id, yes in zip(ids, came, strict=True)
    ]


def _report(answers: list[ActionAnswer], *, as_json: bool, dry_run: bool) -> Exit:
    """Show what became of each, and answer for all: done, partly, or not at all."""
    if as_json:
        print_json({"dry_run": dry_run, "jobs": [answer._asdict() for answer in answers]})
    else:
        print_table(("id", "answer", "key held by"), answers)
    if dry_run:
        print_note("nothing was changed; this is what would be")
    missed = [answer for answer in answers if answer.answer in _WHY]
    if not missed:
        return Exit.DONE
    first = missed[0]
    print_error(
        f"{len(missed)} of {len(answers)} jobs are as they were",
        f"job {first.id}: {_WHY[first.answer]}",
        f"look at it: tenure job show {first.holder or first.id}",
    )
    if len(missed) < len(answers):
        return Exit.PARTIAL
    return Exit.CONFLICT if {a.answer for a in missed} == {"key_held"} else Exit.FAILED
