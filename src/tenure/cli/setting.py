"""`tenure setting`: list and change the installation's settings."""

import json
from typing import Annotated, Any

import typer

from tenure import _actions
from tenure.cli.errors import Exit
from tenure.cli.help import HelpGroup
from tenure.cli.options import CommandContext, operator_command, parse_duration
from tenure.cli.output import print_json, print_note, print_rows

app: typer.Typer = typer.Typer(
    cls=HelpGroup, name="setting", help="List and change the settings of the installation."
)
# The settings that are durations.
_DURATIONS = ("lease", "backoff_base", "backoff_cap")
Name = Annotated[str, typer.Argument(metavar="NAME", help="Name of the setting.")]


@operator_command(app, "list", example="tenure setting list")
def list_settings(ctx: CommandContext) -> int:
    """List the settings with their values.

    JSON: `settings`.
    """
    rows = ctx.admin.settings.list()
    if ctx.as_json:
        print_json({"settings": rows})
    else:
        print_rows(
            rows, "name", "value", ("default", lambda row: row.built_in if row.changed else None)
        )
    print_note(f"{sum(row.changed for row in rows)} of {len(rows)} differ from their default")
    return Exit.DONE


@operator_command(app, _actions.SET_SETTING, example="tenure setting set lease 1m")
def set_setting(
    ctx: CommandContext,
    name: Name,
    value: Annotated[str, typer.Argument(metavar="VALUE", help="JSON, or a duration such as 5m.")],
) -> int:
    """Takes effect immediately, without a restart. `lease`, `backoff_base` and `backoff_cap` take
    durations.

    JSON: `name` and `value`.
    """
    parsed = _parse(name, value)
    ctx.admin.settings.set(name, parsed, ctx.by)
    outcome = _actions.SET_SETTING.outcome(name, value=value)
    hint = f"to undo: tenure setting reset {name}"
    return ctx.done({"name": name, "value": parsed}, outcome, hint)


@operator_command(app, _actions.RESET_SETTING, example="tenure setting reset lease")
def reset(ctx: CommandContext, name: Name) -> int:
    """JSON: `name` and `value`."""
    ctx.admin.settings.reset(name, ctx.by)
    [row] = [row for row in ctx.admin.settings.list() if row.name == name]
    outcome = _actions.RESET_SETTING.outcome(name)
    return ctx.done({"name": name, "value": row.value}, outcome, json.dumps(row.value))


def _parse(name: str, text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        duration = parse_duration(text) if name in _DURATIONS else None
        return text if duration is None else duration.total_seconds()
