"""The proofs and the measurements are projects of their own: each names and locks what it needs."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
OURS = {"bench", "proof", "support", "tests", "tenure"}
# Programs of other queues run in environments of their own.
ELSEWHERE = {"bench/peers", "proof/peers/programs"}


def imported(project: str) -> set[str]:
    """The packages that a project imports from elsewhere."""
    found = set()
    for path in (ROOT / project).rglob("*.py"):
        if path.parent.relative_to(ROOT).as_posix() in ELSEWHERE:
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                found |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                found.add(node.module.partition(".")[0])
    return found - OURS - sys.stdlib_module_names


def locked(path: Path) -> dict[str, str]:
    """The versions of a lock, in which every package has a hash."""
    packages = re.split(r"^(?=[a-z0-9])", path.read_text(), flags=re.MULTILINE | re.IGNORECASE)[1:]
    assert [package for package in packages if "--hash=sha256:" not in package] == []
    found = [re.match(r"([\w.-]+)==([\w.]+)", package) for package in packages]
    return {match[1]: match[2] for match in found if match}


@pytest.mark.parametrize("project", ["bench", "proof"])
def test_a_project_names_what_it_imports(project: str) -> None:
    output = tomllib.loads((ROOT / project / "pyproject.toml").read_text())["project"]
    named = {re.split(r"[^\w-]", each)[0].replace("-", "_") for each in output["dependencies"]}
    assert imported(project) <= named


@pytest.mark.parametrize("project", ["bench", "proof"])
def test_a_project_adds_to_the_environment_and_changes_nothing_in_it(project: str) -> None:
    lock = ROOT / project / "requirements.lock"
    versions, root = locked(lock), locked(ROOT / "requirements-dev.lock")
    assert versions
    assert {
        name: version for name, version in versions.items() if root.get(name, version) != version
    } == {}
    assert "://" not in lock.read_text()


def test_tenure_imports_without_a_django_project() -> None:
    for path in (ROOT / "src").rglob("*.py"):
        assert not re.search(
            r"^\s*(?:from|import) (?:bench|proof|support)\b", path.read_text(), re.MULTILINE
        )
