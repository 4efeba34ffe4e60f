"""The command `tenure`: each verb is a spelling of one `admin` method, and decides nothing.

Nothing is imported here: `tenure probe` is asked every few seconds and answers without the
rest of the house.
"""

import sys
from typing import NoReturn


def main() -> NoReturn:
    """Do what the command line says, and exit with its code."""
    arguments = sys.argv[1:]
    if arguments[:1] == ["probe"]:
        from tenure.cli import probe

        asked = probe.read_options(arguments[1:])
        if asked is not None:
            sys.exit(probe.probe(asked))
    from tenure.cli.commands import run

    sys.exit(run(arguments))
