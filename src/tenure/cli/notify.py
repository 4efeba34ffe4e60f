"""`tenure notify`: list, add, test and remove the rules for notices."""

from typing import Annotated

import typer

from tenure import _actions
from tenure.cli.errors import CommandError, Exit
from tenure.cli.help import HelpGroup
from tenure.cli.options import CommandContext, operator_command, parse_duration
from tenure.cli.output import print_json, print_note, print_rows

app: typer.Typer = typer.Typer(
    cls=HelpGroup, name="notify", help="Notify a receiver of failures and other events."
)
Name = Annotated[str, typer.Argument(metavar="NAME", help="Name of the rule.")]
_LIST = "list the rules: tenure notify list"


@operator_command(app, "list", example="tenure notify list")
def list_rules(ctx: CommandContext) -> int:
    """List the rules for notices.

    JSON: `rules`.
    """
    rows = ctx.admin.notices.list()
    if ctx.as_json:
        print_json({"rules": rows})
    elif rows:
        print_rows(
            rows,
            "name",
            "event",
            "queue",
            "task",
            "format",
            "url",
            "secret",
            "group_for",
            "program",
        )
    print_note(f"{len(rows)} rules")
    return Exit.DONE


@operator_command(
    app,
    _actions.ADD_NOTICE,
    example="tenure notify add ops failed --to https://hooks.example.com/tenure --secret ops",
)
def add(
    ctx: CommandContext,
    name: Name,
    event: Annotated[
        str,
        typer.Argument(
            metavar="EVENT", help="One of failed, queue_behind, schedule_missed, worker_lost."
        ),
    ],
    *,
    secret: Annotated[
        str, typer.Option("--secret", metavar="NAME", help="Name of a secret of the workers.")
    ],
    to: Annotated[
        str | None, typer.Option("--to", metavar="URL", help="Address of the receiver.")
    ] = None,
    queue: Annotated[
        str, typer.Option("--queue", metavar="PATTERN", help="Only this queue, as in mail*.")
    ] = "*",
    task: Annotated[
        str, typer.Option("--task", metavar="PATTERN", help="Only this task, as in mail.*.")
    ] = "*",
    form: Annotated[
        str,
        typer.Option("--format", metavar="FORMAT", help="standard, slack or pagerduty."),
    ] = "standard",
    group_for: Annotated[
        str,
        typer.Option("--group-for", metavar="DURATION", help="One notice per cause in this time."),
    ] = "5m",
    threshold: Annotated[
        str | None,
        typer.Option("--threshold", metavar="DURATION", help="How late a queue may be."),
    ] = None,
) -> int:
    """JSON: the rule."""
    rule = ctx.admin.notices.add(
        name,
        event,
        ctx.by,
        secret=secret,
        url=to,
        queue=queue,
        task=task,
        format=form,
        group_for=parse_duration(group_for),
        threshold=None if threshold is None else parse_duration(threshold),
    )
    outcome = _actions.ADD_NOTICE.outcome(name)
    return ctx.done(rule, outcome, f"try it: tenure notify test {name}")


@operator_command(app, _actions.TEST_NOTICE, example="tenure notify test ops")
def test(ctx: CommandContext, name: Name) -> int:
    """JSON: `job`, the id of the notice's job."""
    job_id = ctx.admin.notices.test(name, ctx.by)
    if job_id is None:
        raise CommandError(
            "no notice was sent", f"there is no notice rule {name}", _LIST, Exit.NOT_FOUND
        )
    outcome = _actions.TEST_NOTICE.outcome(name, job=job_id)
    return ctx.done({"job": job_id}, outcome, f"see its result: tenure job show {job_id}")


@operator_command(app, _actions.REMOVE_NOTICE, example="tenure notify remove ops")
def remove(
    ctx: CommandContext,
    names: Annotated[list[str], typer.Argument(metavar="NAME…", help="Names of rules.")],
) -> int:
    """Exits with 3 if no rule could be removed, and with 7 if only some could.

    JSON: `removed`, the names.
    """
    answers = ctx.admin.notices.remove(names, ctx.by)
    done = [name for name, removed in zip(names, answers, strict=True) if removed]
    if ctx.as_json:
        print_json({"removed": done})
    if not done:
        raise CommandError(
            "no rule was removed", f"there is no notice rule {names[0]}", _LIST, Exit.NOT_FOUND
        )
    print_note(f"{len(done)} of {len(names)} removed")
    return Exit.DONE if len(done) == len(names) else Exit.PARTIAL
