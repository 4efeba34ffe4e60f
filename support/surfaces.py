"""`python -m support.surfaces`: print every public surface of Tenure, one per line, sorted.
`--page` prints docs/reference/names.md.

A surface is a kind and a name:

    python   tenure.admin.Admin.retry(job_id)          a name, a member, or a parameter in brackets
    http     GET /v1/jobs ?queue                       a route, `?` a parameter,
    http     POST /v1/jobs > task                      `>` a field that it takes,
    http     GET /v1/jobs < jobs.id                    `<` a field that it returns
    command  tenure job list --queue                   a command, an argument or an option
    setting  TENURE_POOL_SIZE                          a variable, or a setting of the installation
    metric   tenure_queue_jobs{queue}                  a metric, or a label in braces
    code     reason expired                            a code that a program can compare

`tests/package/test_surfaces.py` compares the list with that of an earlier state.
"""

from __future__ import annotations

import dataclasses
import enum
import inspect
import re
import sys
from datetime import timedelta
from importlib import import_module
from typing import TYPE_CHECKING, Any, get_type_hints

import typer
from django.conf import settings

from support.binaries import ROOT
from tenure import Tenure, _metrics, _schedule_spec, config, task
from tenure._rules.runtime_settings import SETTINGS
from tenure._settings import PROGRAM_SETTINGS
from tenure.admin import jobs
from tenure.cli.commands import app as commands
from tenure.cli.errors import Exit
from tenure.server import create, problems
from tenure.types import AlertCode, ExplanationCode, FindingCode

if TYPE_CHECKING:
    from collections.abc import Iterator

# What the documentation tells people to import.
MODULES = (
    "tenure",
    "tenure.admin",
    "tenure.client",
    "tenure.contrib.django",
    "tenure.contrib.otel",
    "tenure.contrib.starlette",
    "tenure.errors",
    "tenure.server",
    "tenure.testing",
    "tenure.types",
)
CODES: dict[str, type[enum.Enum]] = {
    "alert": AlertCode,
    "exit": Exit,
    "explanation": ExplanationCode,
    "finding": FindingCode,
}
_DEPTH = 6


def surfaces() -> list[str]:
    """Every surface, sorted."""
    kinds = {
        "python": _python(),
        "http": _http(),
        "command": _commands(typer.main.get_command(commands), "tenure"),
        "setting": _settings(),
        "metric": _measured(),
        "code": _codes(),
    }
    return sorted({f"{kind} {name}" for kind, names in kinds.items() for name in names})


def _modules() -> Iterator[Any]:
    if not settings.configured:
        settings.configure()  # The app of `tenure.contrib.django` reads them.
    return map(import_module, MODULES)


def _python() -> Iterator[str]:
    for module in _modules():
        for name in public_names(module):
            yield f"{module.__name__}.{name}"
            yield from _members(f"{module.__name__}.{name}", getattr(module, name))


def public_names(module: Any) -> list[str]:
    """What a module exports; without `__all__`, the classes that it defines."""
    own = [
        name
        for name, value in vars(module).items()
        if inspect.isclass(value) and value.__module__ == module.__name__ and name[0] != "_"
    ]
    return sorted(getattr(module, "__all__", own))


def _members(path: str, value: Any) -> Iterator[str]:
    if inspect.ismodule(value):
        return
    yield from _parameters(path, value)
    if not inspect.isclass(value):
        return
    built_in = {
        name for kind in value.__mro__ if kind.__module__ == "builtins" for name in dir(kind)
    }
    names = {name for name in dir(value) if not name.startswith("_")} - built_in
    if dataclasses.is_dataclass(value):
        names |= {field.name for field in dataclasses.fields(value) if field.name[0] != "_"}
    for name in sorted(names):
        yield f"{path}.{name}"
        yield from _parameters(f"{path}.{name}", inspect.getattr_static(value, name, None))


def _parameters(path: str, value: Any) -> Iterator[str]:
    function = getattr(value, "__wrapped__", getattr(value, "__func__", value))
    if not callable(function) or (inspect.isclass(function) and issubclass(function, enum.Enum)):
        return
    try:
        of = inspect.signature(function).parameters
    except (TypeError, ValueError):  # Of a class without a signature of its own.
        return
    for name, parameter in of.items():
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            options = _options(parameter.annotation) or [name] * (name != "kwargs")
            yield from (f"{path}({option})" for option in options)
        elif parameter.kind is inspect.Parameter.VAR_POSITIONAL and name == "args":
            continue
        elif name not in {"self", "cls"} and not name.startswith("_"):
            yield f"{path}({name})"


def _options(annotation: object) -> list[str]:
    """The keywords of `**options: Unpack[Options]`; none if it is annotated by anything else."""
    found = re.search(r"^(?:Unpack|\*).*?(\w+)\W*$", str(annotation))
    for module in (_schedule_spec, task, config, jobs):
        if found and hasattr(module, found[1]):
            return list(get_type_hints(getattr(module, found[1])))
    return []


def _http() -> Iterator[str]:
    document = create(Tenure("postgresql://nobody@127.0.0.1:1/none")).openapi()
    shapes = document["components"]["schemas"]
    for path, methods in document["paths"].items():
        for method, route in methods.items():
            name = f"{method.upper()} {path}"
            yield name
            yield from (f"{name} ?{each['name']}" for each in route.get("parameters", ()))
            sent = route.get("requestBody", {}).get("content", {})
            yield from (f"{name} > {field}" for field in _fields(sent, shapes))
            answers = [a for status, a in route["responses"].items() if status.startswith("2")]
            for answer in answers:
                fields = _fields(answer.get("content", {}), shapes)
                yield from (f"{name} < {field}" for field in fields)


def _fields(content: dict[str, Any], shapes: dict[str, Any]) -> Iterator[str]:
    for media in content.values():
        yield from _properties(media.get("schema", {}), shapes, ())


def _properties(
    shape: dict[str, Any], shapes: dict[str, Any], path: tuple[str, ...]
) -> Iterator[str]:
    """The fields of a shape, those of inner shapes by the path to them."""
    if len(path) > _DEPTH:
        return
    if "$ref" in shape:
        shape = shapes[shape["$ref"].rpartition("/")[2]]
    for inner in (*shape.get("anyOf", ()), *shape.get("oneOf", ()), *shape.get("allOf", ())):
        yield from _properties(inner, shapes, path)
    for inner in (shape.get("items"), shape.get("additionalProperties")):
        if isinstance(inner, dict):
            yield from _properties(inner, shapes, path)
    for name, inner in shape.get("properties", {}).items():
        yield ".".join((*path, name))
        yield from _properties(inner, shapes, (*path, name))


def _commands(command: Any, path: str) -> Iterator[str]:
    yield path
    for parameter in command.params:
        if parameter.param_type_name == "argument":
            yield f"{path} {(parameter.metavar or parameter.name).upper()}"
        else:
            flags = (*parameter.opts, *parameter.secondary_opts)
            yield from (f"{path} {flag}" for flag in flags if flag != "--help")
    for name, inner in getattr(command, "commands", {}).items():
        yield from _commands(inner, f"{path} {name}")


def _settings() -> Iterator[str]:
    yield from (f"TENURE_{name.upper()}" for name in PROGRAM_SETTINGS)
    yield from SETTINGS


def _measured() -> Iterator[str]:
    for metric in (*_metrics.SERVER, *_metrics.WORKER):
        yield metric.name
        yield from (f"{metric.name}{{{label}}}" for label in metric.labels)


def _codes() -> Iterator[str]:
    for name, codes in CODES.items():
        yield from (f"{name} {code.value}" for code in codes)
    yield from (f"problem {code}" for code in problems.KINDS)
    yield from (f"reason {reason}" for reason in reasons())


def reasons() -> set[str]:
    """Every reason of an ended job that a statement or a rule gives."""
    files = [path for kind in ("*.py", "*.sql") for path in (ROOT / "src/tenure").rglob(kind)]
    source = "\n".join(path.read_text() for path in files)
    given = set(re.findall(r'reason(?:: str)? ?=\s?"(\w+)"', source))
    given |= set(re.findall(r'Cancelled\(.*"(\w+)"\)', source))
    return given | {"attempts", "poison", "lost", "requested", "revoked"}


def page() -> str:
    """docs/reference/names.md: each public name of each module, what it is, and its members."""
    parts = [_HEAD]
    for module in _modules():
        parts.append(f"\n## {module.__name__}\n\n| name | what it is | members |\n|---|---|---|\n")
        for name in public_names(module):
            value = getattr(module, name)
            cells = (f"`{name}`", _summary(value), _listed(value))
            parts.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n")
    return "".join(parts)


_HEAD = """# Every public name

This page lists what each public module exports, with the first sentence of its docstring. Names
that aren't listed here are internal and can change in any release. To learn how to use these names,
start with [Python](python.md), or read the guides.

Most members of `tenure.admin` have an async version whose name starts with an extra `a`. Those
versions aren't listed.

<!-- `just docs-names` writes this page. -->
"""


def _summary(value: Any) -> str:
    if isinstance(value, str | int | float | tuple | list | dict | timedelta):
        return f"{type(value).__name__}, a constant"
    if not (inspect.isclass(value) or inspect.isroutine(value) or inspect.ismodule(value)):
        return _summary(type(value)) if type(value).__module__.startswith("tenure") else "a type"
    text = inspect.getdoc(value) or ""
    sentence = re.split(r"(?<=[.:;])\s", " ".join(text.split()))[0]
    return sentence.rstrip(".:;")


def _listed(value: Any) -> str:
    """The members of a class with their parameters, or the parameters of a function."""
    found: dict[str, list[str]] = {}
    for each in _members("", value):
        name, _, parameter = each.strip(".)").partition("(")
        found.setdefault(name, [])
        if parameter:
            found[name].append(parameter)
    fields = {field.name for field in dataclasses.fields(value)} if _is_data(value) else set()
    own = [one for one in found.pop("", []) if one not in fields]
    twins = {name for name in found if name[0] == "a" and name[1:] in found}
    members = [f"{name}({', '.join(found[name])})" if found[name] else name for name in found]
    shown = [f"({', '.join(own)})"] if own else []
    shown += [member for member in members if member.partition("(")[0] not in twins]
    return ", ".join(f"`{each}`" for each in shown)


def _is_data(value: Any) -> bool:
    return inspect.isclass(value) and dataclasses.is_dataclass(value)


if __name__ == "__main__":
    sys.stdout.write(page() if sys.argv[1:] == ["--page"] else "\n".join(surfaces()) + "\n")
