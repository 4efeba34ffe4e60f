"""The peers of the benchmark: all are named, pinned, and locked without hosts."""

from __future__ import annotations

import json
import re
from pathlib import Path

from bench.peers import environments

ROOT = Path(__file__).parents[2]
NODE = Path(environments.__file__).parent / "node"


def test_every_peer_of_the_comparison_is_named() -> None:
    assert {*environments.PYTHON, *environments.NODE} == {
        "celery",
        "chancy",
        "dramatiq",
        "graphile-worker",
        "oban",
        "pg-boss",
        "pgqueuer",
        "procrastinate",
        "saq",
    }


def test_what_can_be_installed_is_pinned() -> None:
    packages = [
        package
        for name, (_, wanted) in environments.PYTHON.items()
        if name != "oban"  # No version of it runs here.
        for package in wanted
    ]
    assert all("==" in package for package in packages)


def test_what_can_be_installed_is_locked_with_hashes() -> None:
    for project, peers in (("bench", environments.PYTHON), ("proof", environments.UNMEASURED)):
        for name in peers.keys() - {"oban"}:
            lock = (ROOT / project / "locks" / f"{name}.lock").read_text()
            packages = re.split(r"^(?=\S)", lock, flags=re.MULTILINE)[1:]
            assert all("--hash=sha256:" in package for package in packages), name
            for package in peers[name][1]:
                assert re.sub(r"\[.*\]", "", package) in lock
            assert "://" not in lock


def test_every_peer_has_its_program() -> None:
    here = NODE.parent
    for name in environments.PYTHON:
        assert (here / f"{name}.py").exists() == (name != "oban")
    for name in environments.NODE:
        assert (NODE / f"{name}.mjs").exists()


def test_the_lock_of_node_names_versions_and_no_hosts() -> None:
    wanted = json.loads((NODE / "package.json").read_text())
    lock = json.loads((NODE / "package-lock.json").read_text())
    for name, version in {**wanted["dependencies"], **wanted["optionalDependencies"]}.items():
        assert lock["packages"][f"node_modules/{name}"]["version"] == version
    assert not [name for name, package in lock["packages"].items() if "resolved" in package]
