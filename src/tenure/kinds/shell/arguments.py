"""The arguments of shell work, checked when a job is enqueued and again before it runs."""

import re
from collections.abc import Mapping, Sequence

from tenure._model.ids import Json
from tenure._rules.secret_names import SecretNames
from tenure.errors import InvalidValue
from tenure.kinds.settings import is_secret_name

VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
# The kernel's limit for one argument (MAX_ARG_STRLEN).
_LONGEST_ARGUMENT = 131_071
_ARGUMENTS = {"argv", "cwd", "stdin", "env"}
_NAMES = SecretNames()


def check(arguments: Mapping[str, Json]) -> None:
    """Check the arguments of a job, without the worker's configuration.

    Args:
        arguments: `argv`, and optionally `cwd`, `stdin` and `env`.

    Raises:
        InvalidValue: An argument is invalid.
    """
    for name in arguments.keys() - _ARGUMENTS:
        raise InvalidValue(
            f"{name} must be one of argv, cwd, stdin and env; shell work has no other arguments"
        )
    _check_argv(arguments.get("argv"))
    cwd, stdin = arguments.get("cwd"), arguments.get("stdin")
    if cwd is not None and not (isinstance(cwd, str) and cwd.startswith("/") and "\0" not in cwd):
        raise InvalidValue(
            f"cwd must be an absolute path, got {cwd!r}; write it as in '/srv/reports'"
        )
    if stdin is not None and not isinstance(stdin, str):
        raise InvalidValue(
            f"stdin must be text, got {type(stdin).__name__}; encode other data as text"
        )
    env = arguments.get("env")
    if env is not None and not isinstance(env, dict):
        raise InvalidValue(
            f"env must be a dict of names and values, got {type(env).__name__}; write it as in "
            "{'LANG': 'C.UTF-8'}"
        )
    for name, value in (env or {}).items():
        _check_variable(name, value)


def _check_argv(argv: Json) -> None:
    if not isinstance(argv, Sequence) or isinstance(argv, str) or not argv:
        raise InvalidValue(
            f"argv must be a list of strings, got {argv!r}; write each argument as its own string, "
            "as in ['pg_dump', '-Fc', 'shop']. No shell splits or expands it"
        )
    for at, argument in enumerate(argv):
        if not isinstance(argument, str) or "\0" in argument:
            raise InvalidValue(
                f"argv[{at}] must be a string without NUL, got {argument!r}; convert it to text"
            )
        if len(argument.encode(errors="replace")) > _LONGEST_ARGUMENT:
            raise InvalidValue(
                f"argv[{at}] must be at most {_LONGEST_ARGUMENT:,} bytes, got "
                f"{len(argument.encode(errors='replace')):,}; pass the data as stdin"
            )
    program = str(argv[0])
    if not program or ("/" in program and not program.startswith("/")):
        raise InvalidValue(
            f"argv[0] must be a name or an absolute path, got {program!r}; write it as in "
            "'pg_dump' or '/usr/bin/pg_dump'"
        )


def _check_variable(name: str, value: Json) -> None:
    if not VARIABLE.fullmatch(name):
        raise InvalidValue(
            f"env must have names of letters, digits and underscores, got {name!r}; "
            "write it as in 'LANG'"
        )
    if name.startswith(("LD_", "TENURE_")):
        raise InvalidValue(
            f"env must not set {name}; variables that start with LD_ or TENURE_ are reserved"
        )
    if isinstance(value, dict):
        if value.keys() != {"secret"} or not is_secret_name(value["secret"]):
            raise InvalidValue(
                f"env[{name!r}] must be text or the name of a secret; write it as in "
                "{'secret': 'shop_db'}"
            )
    elif not isinstance(value, str) or "\0" in value:
        raise InvalidValue(
            f"env[{name!r}] must be text without NUL, got {type(value).__name__}; convert it to "
            "text"
        )
    elif _NAMES.has(name):
        raise InvalidValue(
            f"env[{name!r}] must not contain a secret's value, because arguments are stored; name "
            "a secret of the worker: {'secret': 'shop_db'}"
        )
