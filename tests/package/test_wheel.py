"""The wheel has all of the package and nothing else, and asks for no more than the core needs."""

from __future__ import annotations

import re
import zipfile
from email.parser import HeaderParser
from importlib import metadata
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
KINDS = {".py", ".sql", ".typed", ".html", ".css", ".js", ".json", ".svg", ".LICENSE"}
CORE = {"cronsim", "psycopg", "psycopg-pool", "rich", "typer"}


@pytest.fixture(scope="session")
def files(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


@pytest.fixture(scope="session")
def headers(wheel: Path, files: set[str]) -> dict[str, list[str]]:
    [name] = [name for name in files if name.endswith(".dist-info/METADATA")]
    with zipfile.ZipFile(wheel) as archive:
        text = HeaderParser().parsestr(archive.read(name).decode())
    return {key: text.get_all(key) or [] for key in text}


def test_the_wheel_is_the_package_and_nothing_else(files: set[str]) -> None:
    source = ROOT / "src"
    wanted = {
        str(path.relative_to(source))
        for path in source.rglob("*")
        if path.is_file() and path.suffix in KINDS
    }
    assert {name for name in files if ".dist-info/" not in name} == wanted
    assert {"tenure/py.typed", "tenure/_store/postgres/sql/claim.sql"} <= wanted
    assert any("/migrations/001_" in name for name in wanted)


def test_beside_the_package_there_are_its_papers(files: set[str]) -> None:
    papers = {name.partition(".dist-info/")[2] for name in files if ".dist-info/" in name}
    wanted = {"METADATA", "WHEEL", "RECORD", "entry_points.txt", "licenses/LICENSE"}
    assert papers == wanted


def test_core_needs_no_extras(headers: dict[str, list[str]]) -> None:
    request = headers["Requires-Dist"]
    plain = {re.split(r"[^\w-]", text, maxsplit=1)[0] for text in request if "extra ==" not in text}
    assert plain == CORE
    assert headers["Requires-Python"] == [">=3.11"]


def test_every_extra_is_named(headers: dict[str, list[str]]) -> None:
    named = set(headers["Provides-Extra"])
    used = set(re.findall(r"extra == '([\w-]+)'", "\n".join(headers["Requires-Dist"])))
    assert {"binary", "redis"} <= named
    assert used == named


def test_what_is_installed_without_extras_is_what_the_core_needs() -> None:
    """Nothing that one of Tenure's own extras is for is behind the core's back door."""
    closure = _closure(CORE)
    assert closure >= CORE
    assert not closure & {"psycopg-binary", "redis", "django", "fastapi", "sqlalchemy", "uvicorn"}
    assert len(closure) < 20


def _closure(names: set[str]) -> set[str]:
    """These packages and all that they need here, without extras."""
    found: set[str] = set()
    waiting = list(names)
    while waiting:
        name = re.sub(r"[-_.]+", "-", waiting.pop()).lower()
        if name in found:
            continue
        try:
            requests = metadata.requires(name) or []
        except metadata.PackageNotFoundError:
            continue  # for another platform or version of Python
        found.add(name)
        plain = [text for text in requests if "extra ==" not in text]
        waiting += [re.split(r"[^\w.-]", text, maxsplit=1)[0] for text in plain]
    return found
