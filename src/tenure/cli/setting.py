"""`tenure setting`: the settings of the whole installation, changed at run time."""

import json
from typing import Annotated, Any

import typer

from tenure.cli.errors import Exit
from tenure.cli.options import (
    AsJson,
    Commands,
    DatabaseUrl,
    Reason,
    SchemaName,
    Who,
    actor,
    connect_admin,
    parse_duration,
)
from tenure.cli.output import print_json, print_note, print_table

app: typer.Typer = typer.Typer(
    cls=Commands, name="setting", help="Settings of the installation: look at them, change them."
)
# Those that are a duration; of all others a number is no length of time.
_LASTING = ("lease", "backoff_base", "backoff_cap")
Name = Annotated[str, typer.Argument(metavar="NAME", help="The setting's name.")]


@app.command("list")
def list_settings(
    *, as_json: AsJson = False, database_url: DatabaseUrl = None, schema: SchemaName = None
) -> int:
    """Show all settings as they are in force."""
    with connect_admin(database_url, schema) as admin:
        rows = admin.settings()
    if as_json:
        print_json({"settings": rows})
    else:
        print_table(
            ("name", "value", "built in"),
            [(row.name, row.value, row.built_in if row.changed else None) for row in rows],
        )
    print_note(f"{sum(row.changed for row in rows)} of {len(rows)} are changed")
    return Exit.DONE


@app.command("set")
def set_setting(
    name: Name,
    value: Annotated[str, typer.Argument(metavar="VALUE", help="As JSON, or a duration: 5m.")],
    *,
    reason: Reason = None,
    who: Who = None,
    as_json: AsJson = False,
    database_url: DatabaseUrl = None,
    schema: SchemaName = None,
) -> int:
    """Change a setting for the whole installation, at once and without a restart."""
    read = _read(name, value)
    with connect_admin(database_url, schema) as admin:
        admin.set_setting(name, read, actor(who, reason))
    if as_json:
        print_json({"name": name, "value": read})
    print_note(f"{name} is {value}; to go back: tenure setting reset {name}")
    return Exit.DONE


@app.command("reset")
def reset(
    name: Name,
    *,
    reason: Reason = None,
    who: Who = None,
    as_json: AsJson = False,
    database_url: DatabaseUrl = None,
    schema: SchemaName = None,
) -> int:
    """Take a setting back to its built-in value."""
    with connect_admin(database_url, schema) as admin:
        admin.reset_setting(name, actor(who, reason))
        [row] = [row for row in admin.settings() if row.name == name]
    if as_json:
        print_json({"name": name, "value": row.value})
    print_note(f"{name} is {json.dumps(row.value)} again")
    return Exit.DONE


def _read(name: str, text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        lasts = parse_duration(text) if name in _LASTING else None
        return text if lasts is None else lasts.total_seconds()
