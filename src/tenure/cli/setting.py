"""`tenure setting`: the settings of the whole installation, changed at run time."""

import json
from typing import Annotated, Any

import typer

from tenure import _actions
from tenure.cli.errors import Exit
from tenure.cli.options import CommandContext, Commands, operator_command, parse_duration
from tenure.cli.output import print_json, print_note, print_rows

app: typer.Typer = typer.Typer(
    cls=Commands, name="setting", help="Settings of the installation: look at them, change them."
)
# Those that are a duration; of all others a number is no length of time.
_LASTING = ("lease", "backoff_base", "backoff_cap")
Name = Annotated[str, typer.Argument(metavar="NAME", help="The setting's name.")]


@operator_command(app, "list")
def list_settings(ctx: CommandContext) -> int:
    """Show all settings as they are in force."""
    rows = ctx.admin.settings.list()
    if ctx.as_json:
        print_json({"settings": rows})
    else:
        print_rows(
            rows, "name", "value", ("built in", lambda row: row.built_in if row.changed else None)
        )
    print_note(f"{sum(row.changed for row in rows)} of {len(rows)} are changed")
    return Exit.DONE


@operator_command(app, _actions.SET_SETTING)
def set_setting(
    ctx: CommandContext,
    name: Name,
    value: Annotated[str, typer.Argument(metavar="VALUE", help="As JSON, or a duration: 5m.")],
) -> int:
    read = _read(name, value)
    ctx.admin.settings.set(name, read, ctx.by)
    outcome = _actions.SET_SETTING.outcome(name, value=value)
    hint = f"to go back: tenure setting reset {name}"
    return ctx.done({"name": name, "value": read}, outcome, hint)


@operator_command(app, _actions.RESET_SETTING)
def reset(ctx: CommandContext, name: Name) -> int:
    ctx.admin.settings.reset(name, ctx.by)
    [row] = [row for row in ctx.admin.settings.list() if row.name == name]
    outcome = _actions.RESET_SETTING.outcome(name)
    return ctx.done({"name": name, "value": row.value}, outcome, json.dumps(row.value))


def _read(name: str, text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        lasts = parse_duration(text) if name in _LASTING else None
        return text if lasts is None else lasts.total_seconds()
