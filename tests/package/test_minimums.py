"""Each declared minimum is a version that the suites ran on, without known defects of HTTP."""

from __future__ import annotations

import re
from pathlib import Path

from support.minimums import LOCK, ROOT, declared, locked

# h11 before 0.16 accepts malformed chunks (CVE-2025-43859), a way to smuggle requests past a proxy.
SAFE = {"h11": (0, 16), "starlette": (0, 49, 1), "jinja2": (3, 1, 6)}


def numbers(version: str) -> tuple[int, ...]:
    """A version's numbers, without zeros at the end."""
    parts = [int(part) for part in version.split(".")]
    while parts and parts[-1] == 0:
        parts.pop()
    return tuple(parts)


def test_server_asks_for_versions_without_known_defects() -> None:
    minimums = declared()
    assert {
        name: numbers(minimums[name]) >= least for name, least in SAFE.items()
    } == dict.fromkeys(SAFE, True)


def test_every_minimum_is_the_version_that_the_recipe_installs() -> None:
    versions = locked(LOCK)
    # Compared as numbers: 13 is 13.0.0.
    assert {name: numbers(versions[name]) for name in declared()} == {
        name: numbers(minimum) for name, minimum in declared().items()
    }


def test_lock_of_the_minimums_has_hashes_and_names_no_host() -> None:
    text = LOCK.read_text()
    packages = re.split(r"^(?=[a-z0-9])", text, flags=re.MULTILINE | re.IGNORECASE)[1:]
    assert [package for package in packages if "--hash=sha256:" not in package] == []
    assert "://" not in text


def test_recipe_runs_suites_that_exist() -> None:
    found = re.search(r'^minimums := "(.*)"$', (ROOT / "justfile").read_text(), re.MULTILINE)
    assert found
    assert [path for path in found[1].split() if not Path(ROOT, path).is_dir()] == []
