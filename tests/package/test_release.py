"""The files of a release are built twice alike, and a changed one is noticed."""

from __future__ import annotations

import hashlib
import json
import tomllib
from typing import TYPE_CHECKING, Any

import pytest

from support import release
from support.binaries import ROOT
from support.minimums import declared, locked
from support.sbom import sbom

if TYPE_CHECKING:
    from pathlib import Path

COMMIT = "0" * 40
VENDOR = ROOT / "src/tenure/server/dashboard/static/vendor"


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(sbom(ROOT, built_at=0, commit=COMMIT))
    return loaded


def test_the_bill_lists_every_dependency_at_its_locked_version(document: dict[str, Any]) -> None:
    versions = locked(ROOT / "requirements-dev.lock")
    packages = {
        each["name"]: each for each in document["components"] if each["purl"].startswith("pkg:pypi")
    }
    assert declared().keys() <= packages.keys()
    assert {name: each["version"] for name, each in packages.items()} == {
        name: versions[name] for name in packages
    }
    # What only development needs is not in a user's process.
    assert not packages.keys() & {"pytest", "mypy", "ruff", "sphinx", "hypothesis", "build"}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    core = {line.partition(">")[0] for line in project["dependencies"]}
    assert {packages[name]["scope"] for name in core} == {"required"}
    assert {packages[name]["scope"] for name in ("django", "psycopg-binary")} == {"optional"}


def test_the_bill_lists_the_scripts_of_the_dashboard(document: dict[str, Any]) -> None:
    sums = {
        hashed["content"] for each in document["components"] for hashed in each.get("hashes", ())
    }
    scripts = [file for file in VENDOR.iterdir() if file.suffix in (".js", ".css")]
    assert {hashlib.sha256(file.read_bytes()).hexdigest() for file in scripts} == sums


def test_every_reference_of_the_bill_is_one_of_its_components(document: dict[str, Any]) -> None:
    refs = [each["bom-ref"] for each in document["components"]]
    refs.append(document["metadata"]["component"]["bom-ref"])
    assert len(refs) == len(set(refs))
    named = {
        ref
        for edge in document["dependencies"]
        for ref in (edge["ref"], *edge.get("dependsOn", ()))
    }
    assert named == set(refs)


def test_a_release_is_built_again_alike_and_a_changed_file_is_found(tmp_path: Path) -> None:
    files = {file.name for file in release.build(tmp_path)}
    assert {name.rpartition(".")[2] for name in files} == {"gz", "whl", "json"}
    with pytest.raises(SystemExit, match="must be empty"):
        release.build(tmp_path)
    (tmp_path / "planted.whl").touch()
    with (tmp_path / release.SBOM).open("a") as file:
        file.write("\n")

    problems = release.verify(tmp_path)

    # No word of the sdist and the wheel: they are the same bytes as the second ones.
    assert {problem.partition(":")[0] for problem in problems} == {"planted.whl", release.SBOM}
    assert f"{release.SBOM}: differs from its checksum" in problems
    assert "planted.whl: not listed" in problems


def test_a_release_without_its_sums_is_refused(tmp_path: Path) -> None:
    assert "cannot be read" in release.verify(tmp_path)[0]
