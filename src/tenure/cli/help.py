"""A command's help: usage, arguments, options and one example."""

from typing import Any, NamedTuple

from typer.core import TyperCommand, TyperGroup

_WHOLE = 10_000


class ParameterText(NamedTuple):
    """An argument or option, as shown in the help and the reference."""

    name: str
    help: str
    default: str
    required: bool

    @property
    def line(self) -> str:
        """The help text, with the default in Click's format."""
        if self.required:
            return f"{self.help}  [required]"
        return f"{self.help}  [default: {self.default}]" if self.default else self.help


def argument_name(parameter: Any) -> str:
    """Return an argument as the usage line shows it, in brackets if it's optional."""
    name = str(parameter.metavar or parameter.name).strip("[]")
    return name if parameter.required else f"[{name}]"


def describe(parameter: Any) -> ParameterText:
    """Return an argument's or option's texts."""
    help_text = str(parameter.help or "")
    shown, default = parameter.show_default, parameter.default
    if not isinstance(shown, str):
        is_shown = shown and default not in (None, False, "", (), []) and not callable(default)
        shown = str(default) if is_shown else ""
    if parameter.param_type_name == "argument":
        return ParameterText(argument_name(parameter), help_text, shown, parameter.required)
    name = ", ".join([*parameter.opts, *parameter.secondary_opts])
    if not parameter.is_flag:
        name += f" {parameter.metavar or 'TEXT'}"
    return ParameterText(name, help_text, shown, parameter.required)


class HelpCommand(TyperCommand):
    """A command. Its epilog is an example."""

    def format_usage(self, ctx: Any, formatter: Any) -> None:
        """Write the usage line. A hidden command is its group's default command."""
        path = ctx.parent.command_path if self.hidden and ctx.parent else ctx.command_path
        formatter.write_usage(path, self.usage)

    @property
    def usage(self) -> str:
        """What follows the command's name."""
        arguments = [p for p in self.params if p.param_type_name == "argument"]
        return " ".join(["[OPTIONS]", *map(argument_name, arguments)])

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the arguments, then the options."""
        parameters = self.get_params(ctx)
        for title, kind in (("Arguments", "argument"), ("Options", "option")):
            texts = [describe(p) for p in parameters if p.param_type_name == kind]
            if texts:
                with formatter.section(title):
                    formatter.write_dl([(text.name, text.line) for text in texts])

    def format_epilog(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002 - Click calls it
        """Write the example on one line, for copying."""
        if self.epilog:
            formatter.write(f"\n{self.epilog}\n")


class HelpGroup(TyperGroup):
    """A group of commands."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the commands with a sentence each, without truncating any."""
        names = [name for name in self.list_commands(ctx) if not self.commands[name].hidden]
        rows = [(name, self.commands[name].get_short_help_str(_WHOLE)) for name in names]
        with formatter.section("Commands"):
            formatter.write_dl(rows)
