"""The `tenure` command.

Each subcommand calls one `tenure.admin` method and adds no logic. Nothing is imported here, because
`tenure probe` runs every few seconds and must start fast.
"""

import sys
from typing import NoReturn


def main() -> NoReturn:
    """Run the command line, and exit with its code."""
    arguments = sys.argv[1:]
    if arguments[:1] == ["probe"]:
        from tenure.cli import probe

        options = probe.read_options(arguments[1:])
        if options is not None:
            sys.exit(probe.probe(options))
    from tenure.cli.commands import run

    sys.exit(run(arguments))
