"""Another version of the package is run from its own files."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from support import versions

if TYPE_CHECKING:
    from pathlib import Path


def git(directory: Path, *arguments: str) -> None:
    identity = ("-c", "user.name=Nobody", "-c", "user.email=nobody@localhost")
    subprocess.run(
        ["git", *identity, *arguments],  # noqa: S607 - the git that there is
        cwd=directory,
        check=True,
        capture_output=True,
        timeout=30,
    )


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """With a package of two versions, the first of which is tagged."""
    monkeypatch.setattr(versions, "VERSIONS", tmp_path / "versions")
    there = tmp_path / "repository"
    package = there / "src" / "tenure"
    package.mkdir(parents=True)
    git(there, "init", "--quiet", ".")
    for name in ("first", "second"):
        (package / "__init__.py").write_text(f"name = {name!r}\n")
        git(there, "add", ".")
        git(there, "commit", "--quiet", "--message", name)
        if name == "first":
            git(there, "tag", "v1")
    return there


def run(version: versions.Version, *arguments: str) -> str:
    return subprocess.run(
        [sys.executable, *arguments],
        env=os.environ | version.environment,
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
    ).stdout


def test_a_tag_and_the_head_are_different_packages(repository: Path) -> None:
    for ref, name in (("v1", "first"), ("HEAD", "second")):
        for _ in ("unpacked", "there already"):
            version = versions.fetch(ref, repository)
            assert run(version, "-c", "import tenure; print(tenure.name)") == f"{name}\n"
    assert len(list(versions.VERSIONS.iterdir())) == 2


def test_a_worker_of_this_repositorys_head_starts() -> None:
    version = versions.fetch("HEAD")
    assert "--concurrency" in run(version, "-m", "tenure", "worker", "--help")
    there = run(version, "-c", "import tenure; print(tenure.__file__)")
    assert there.startswith(str(version.source))


def test_a_missing_tag_says_what_to_fetch(repository: Path) -> None:
    with pytest.raises(versions.VersionNotFoundError, match="run: git fetch --tags"):
        versions.fetch("v2", repository)


def test_a_shallow_clone_says_what_to_fetch(repository: Path, tmp_path: Path) -> None:
    git(tmp_path, "clone", "--quiet", "--depth=1", "--no-tags", repository.as_uri(), "shallow")
    with pytest.raises(versions.VersionNotFoundError, match="shallow; run: git fetch --unshallow"):
        versions.fetch("v1", tmp_path / "shallow")


def test_missing_repository_is_reported_plainly(tmp_path: Path) -> None:
    with pytest.raises(versions.VersionNotFoundError, match="no history to take v1 from"):
        versions.fetch("v1", tmp_path)
