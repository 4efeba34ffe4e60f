"""Commands that stand together: their help has the first sentence of each, and cuts none."""

from typing import Any

from typer.core import TyperGroup

_WHOLE = 10_000


class Commands(TyperGroup):
    """A group of commands."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the commands with what each does."""
        names = self.list_commands(ctx)
        rows = [(name, self.commands[name].get_short_help_str(_WHOLE)) for name in names]
        with formatter.section("Commands"):
            formatter.write_dl(rows)
