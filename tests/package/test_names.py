"""One class name has one home, and a renamed identifier does not come back."""

import ast
import re
import tokenize
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
SOURCE = ROOT / "src" / "tenure"
RECORD = ROOT / "docs" / "design" / "renamed.md"

# Django finds both by their names: the class of every migration, and the model of the table `job`.
SEVERAL_HOMES = {"Job", "Migration"}

# Renamed in one home; the name belongs to another one now.
STILL_USED = {
    "AT_ONCE",  # of the demo
    "Bound",  # of a selector
    "Changes",  # of an operation
    "Condition",  # of the standard library
    "FailedGroups",  # of `tenure.admin`
    "Health",  # of a worker
    "Jobs",  # of `tenure.admin`
    "LEASE_OVER",  # a finding
    "Link",  # of OpenTelemetry
    "OWN",  # a kind of loss
    "Operations",  # of `tenure.admin`
    "Order",  # of the demo's shop
    "Problem",  # of `tenure.client`
    "Queues",  # of `tenure.admin`
    "RUNNING",  # a state
    "Renewer",  # of a worker
    "Runner",  # of operations of the store
    "Schedules",  # of `tenure.admin`
    "Schema",  # of `tenure.admin`
    "Session",  # on a connection
    "Span",  # of statistics
    "Step",  # of a Django migration
    "WAITING",  # a metric
    "Work",  # of `tenure.client`
    "Workers",  # of `tenure.admin`
}


def _files() -> list[Path]:
    return sorted(SOURCE.rglob("*.py"))


def _renamed() -> Iterator[tuple[str, str]]:
    for line in RECORD.read_text().splitlines():
        match = re.fullmatch(r"\| `[\w.]+` \| `(\w+)` \| `(\w+)` \|", line)
        if match:
            yield match[1], match[2]


def test_every_class_name_has_one_home() -> None:
    homes = defaultdict(set)
    for path in _files():
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef):
                homes[node.name].add(path.relative_to(SOURCE).as_posix())
    several = {name: paths for name, paths in homes.items() if len(paths) > 1}
    assert {name: several[name] for name in several if name not in SEVERAL_HOMES} == {}


@pytest.fixture(scope="module")
def identifiers() -> dict[str, set[str]]:
    """Every identifier of the source, with the files that have it."""
    found = defaultdict(set)
    for path in _files():
        with path.open("rb") as lines:
            for token in tokenize.tokenize(lines.readline):
                if token.type == tokenize.NAME:
                    found[token.string].add(path.relative_to(SOURCE).as_posix())
    return found


def test_renamed_identifiers_do_not_come_back(identifiers: dict[str, set[str]]) -> None:
    renamed = list(_renamed())
    now = {new for _, new in renamed}
    # A name of one lower-case word, such as `place`, may mean something else elsewhere.
    distinct = {old for old, _ in renamed if re.search(r"[A-Z]|[a-z]_[a-z]", old)}
    back = {old: identifiers[old] for old in distinct - now - STILL_USED if old in identifiers}
    assert back == {}
