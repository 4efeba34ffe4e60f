"""Docstrings are the Python reference: every public name is on the page, every parameter is in the
docstring of its function, and the examples run."""

from __future__ import annotations

import dataclasses
import inspect
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from sphinx.util.inventory import InventoryFile

from support import surfaces
from support.store import install
from tenure import Draft, Handle, Job, JobEvent, Tenure, WorkerEvent
from tenure._model.event import EVENTS
from tenure._rules.runtime_settings import SETTINGS
from tenure.admin import Filter, Tokens
from tenure.admin._commands import AdminCommand, AsyncTwin, SubGroup
from tenure.config import Defaults
from tenure.task import Task

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from support.databases import Databases

DOCS = Path(__file__).parents[2] / "docs"
REFERENCE = DOCS / "reference"
# Shown by hand: a module, and an object that needs a Django project.
BY_HAND = {"tenure.errors", "tenure.contrib.django.app"}
# Their docstrings are not in Google style: rows and rules, which autodoc shows by their types.
INTERNAL = "tenure._"
# Tenure makes these. Their constructors are not for callers.
MADE_BY_TENURE = {"AsyncJob", "Handle", "Job", "Task"}
VARIABLE = {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}
EXAMPLES: list[Callable[..., Any]] = [
    Tenure,
    Tenure.task,
    Tenure.schedule,
    Task.using,
    Handle,
    Job,
]


def section(page: str, title: str) -> str:
    """A page's text from this heading to the next; the beginning for ''."""
    parts = re.split(r"^###? (.*)\n", (REFERENCE / page).read_text(), flags=re.MULTILINE)
    return dict(zip(["", *parts[1::2]], parts[::2], strict=True))[title]


def first_column(page: str, title: str, table: int = 0) -> set[str]:
    """The names that begin the rows of a section's table."""
    tables = re.findall(r"(?:^\|.*\n)+", section(page, title), re.MULTILINE)
    return set(re.findall(r"^\| `(\w+)` \|", tables[table], re.MULTILINE))


def parameters(function: Callable[..., Any]) -> set[str]:
    """The names of the parameters; for `**options`, the keys of its TypedDict."""
    names = set()
    for name, parameter in inspect.signature(function).parameters.items():
        if options := surfaces._options(parameter.annotation):
            names |= set(options)
        elif parameter.kind in VARIABLE and name in {"args", "kwargs"}:
            continue
        elif name not in {"self", "cls"} and not name.startswith("_"):
            names.add(name)
    return names


def described(text: str | None, heading: str) -> set[str]:
    """The names in a section of a docstring in Google style."""
    form = re.compile(rf"^{heading}:\n((?:    .*\n|\n)+)", re.MULTILINE)
    found = form.search(f"{inspect.cleandoc(text or '')}\n")
    names = re.findall(r"^    (\*{0,2}\w+):", found[1], re.MULTILINE) if found else []
    return {name.lstrip("*") for name in names} - {"args", "kwargs"} | {"args"} & set(names)


def public_values() -> Iterator[tuple[str, Any]]:
    """Every public name with its full name; one that is in two modules, twice."""
    for module in surfaces._modules():
        for name in surfaces.public_names(module):
            if f"{module.__name__}.{name}" not in BY_HAND:
                yield f"{module.__name__}.{name}", getattr(module, name)


def members(kind: type) -> set[str]:
    """The public names of a class."""
    return {name for name in dir(kind) if not name.startswith("_")}


def methods(kind: type) -> Iterator[tuple[str, Any]]:
    """The public methods and properties of a class of ours, inherited ones too."""
    for name in dir(kind):
        value = inspect.getattr_static(kind, name)
        if name.startswith("_") or isinstance(value, AsyncTwin | SubGroup):
            continue
        if isinstance(value, property | AdminCommand | classmethod) or inspect.isroutine(value):
            owner = next(base for base in kind.__mro__ if name in vars(base))
            if owner.__module__.startswith("tenure"):
                yield name, value


@pytest.fixture(scope="module")
def on_the_page(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """The names that have an anchor on the page, which is built alone."""
    source, target = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("site")
    (source / "reference").mkdir()
    shutil.copy(DOCS / "conf.py", source)
    shutil.copy(REFERENCE / "python.md", source / "reference")
    command = [sys.executable, "-m", "sphinx", "-q", "-D", "root_doc=reference/python"]
    subprocess.run([*command, str(source), str(target)], check=True, timeout=100)
    with (target / "objects.inv").open("rb") as file:
        inventory = InventoryFile.load(file, "", lambda base, uri: f"{base}{uri}")
    return {name for kind, names in inventory.items() if kind[:3] == "py:" for name in names}


def test_every_public_name_is_documented(on_the_page: set[str]) -> None:
    for name, value in public_values():
        home = name
        if name.startswith("tenure.admin.") and name not in on_the_page:
            home = name.replace("tenure.admin.", "tenure.types.")
        assert home in on_the_page, name
        # Rows and enums show their fields by their types.
        if inspect.isclass(value) and not value.__module__.startswith(INTERNAL):
            for member, _ in methods(value):
                assert f"{home}.{member}" in on_the_page, f"{home}.{member}"


def documented_functions() -> Iterator[tuple[str, Callable[..., Any], str | None]]:
    """Every public function and method of our modules, each with the text of its docstring."""
    for name, value in [*public_values(), ("tenure.task.Task", Task)]:
        if getattr(value, "__module__", INTERNAL).startswith(INTERNAL):
            continue
        if inspect.isroutine(value):
            yield name, inspect.unwrap(value), value.__doc__
        if not inspect.isclass(value):
            continue
        is_row = dataclasses.is_dataclass(value) and "Args:" not in (value.__doc__ or "")
        if "__init__" in vars(value) and not is_row and value.__name__ not in MADE_BY_TENURE:
            yield name, value.__init__, value.__doc__
        for member, one in methods(value):
            function = getattr(one, "__wrapped__", getattr(one, "__func__", one))
            if not isinstance(one, property):
                yield f"{name}.{member}", inspect.unwrap(function), one.__doc__


@pytest.mark.parametrize(
    ("function", "text"),
    [
        pytest.param(function, text, id=name)
        for name, function, text in documented_functions()
        if not name.startswith(("tenure.server.", "tenure.admin.Admin.doctor"))
    ],
)
def test_every_parameter_is_documented(function: Callable[..., Any], text: str | None) -> None:
    assert described(text, "Args") == parameters(function)


def test_every_field_of_a_result_is_documented() -> None:
    for name, value in public_values():
        if not inspect.isclass(value) or value.__module__.startswith((INTERNAL, "tenure.server")):
            continue
        if dataclasses.is_dataclass(value) and "Args:" not in (value.__doc__ or ""):
            fields = {field.name for field in dataclasses.fields(value)}
            assert described(value.__doc__, "Attributes") == fields, name


@pytest.fixture
def url(databases: Databases) -> Iterator[str]:
    """The URL of a fresh database with the schema of this release."""
    made = databases.create(databases.template("tenure", install))
    yield made
    databases.drop(made)


@pytest.mark.parametrize("value", EXAMPLES, ids=lambda value: value.__qualname__)
def test_the_example_of_a_docstring_runs(
    value: Any, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # No tenure.toml is here.
    monkeypatch.setenv("TENURE_DATABASE_URL", url)
    [example] = re.findall(
        r"^Example::\n\n((?:    .*\n|\n)+)", f"{inspect.getdoc(value)}\n", re.MULTILINE
    )
    names: dict[str, Any] = {"__name__": "example"}
    try:
        exec(textwrap.dedent(example), names)  # noqa: S102 - the project's own text
    finally:
        names["app"].close()


def test_every_event_and_its_fields_are_documented() -> None:
    title = "@app.on(…)"
    assert first_column("python.md", title) == set(EVENTS)
    assert first_column("python.md", title, 1) == set(JobEvent._fields)
    assert first_column("python.md", title, 2) == {f.name for f in dataclasses.fields(WorkerEvent)}


def test_everything_about_middleware_is_documented(on_the_page: set[str]) -> None:
    shown = {name for name, _ in methods(Draft)}
    assert {f"tenure.Draft.{name}" for name in shown} <= on_the_page
    assert {"meta", "id", "created"} <= set(re.findall(r"`(\w+)`", Draft.__doc__ or ""))


def test_exceptions_for_handlers_are_documented_with_their_effect() -> None:
    table = section("python.md", "How a handler ends")
    for name in ("Retry", "GiveUp", "Cancel", "Snooze", "LeaseLost", "Stopped", "give_up_on"):
        assert name in table


def commands(group: object) -> set[str]:
    """The names of a group's commands, without their async versions."""
    verbs = {name for name in dir(group) if not name.startswith("_")}
    return verbs - {name for name in verbs if name.startswith("a") and name[1:] in verbs}


def test_every_verb_over_operations_and_every_field_of_a_filter_is_documented() -> None:
    """Shows R15, R36."""
    page = section("operations.md", "Start one").partition("field of `Filter`")[2]
    rows = re.findall(r"^\| (`.*?) \|", page, re.MULTILINE)
    named = set(re.findall(r"`(\w+)`", " ".join(rows)))
    assert named == {field.name for field in dataclasses.fields(Filter)}


def test_every_verb_over_access_tokens_is_documented() -> None:
    assert first_column("access.md", "In Python") == commands(Tokens)


def test_every_built_in_value_is_a_setting_or_a_constant_in_the_reference() -> None:
    constants = set(re.findall(r"^- `(\w+)`", section("settings.md", "Constants"), re.MULTILINE))
    fields = {field.name for field in dataclasses.fields(Defaults)}
    assert constants <= fields
    for name in fields - constants:
        assert any(setting.startswith(name) for setting in SETTINGS), name
