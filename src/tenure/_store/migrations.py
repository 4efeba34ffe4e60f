"""Determine which migrations exist and which are pending. Each store defines what they do."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tenure.errors import InvalidValue, SchemaTooNew, SchemaTooOld

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

_FILE = re.compile(r"(?P<version>\d{3})_(?P<slug>[a-z0-9_]+)\.(?P<way>up|down)\.sql")


@dataclass(frozen=True, slots=True)
class Script:
    """One direction of a migration. Its header sets `transaction` and `breaking`."""

    text: str
    transaction: bool
    breaking: bool


@dataclass(frozen=True, slots=True)
class Migration:
    """One schema migration, up and down."""

    version: int
    slug: str
    up: Script
    down: Script

    @property
    def name(self) -> str:
        return f"{self.version:03}_{self.slug}"


def load(directory: "Traversable") -> Sequence[Migration]:
    """Load a directory's migrations. A gap, a duplicate or a missing direction is a bug."""
    scripts: dict[tuple[int, str], dict[str, Script]] = {}
    for file in directory.iterdir():
        if match := _FILE.fullmatch(file.name):
            key = int(match["version"]), match["slug"]
            scripts.setdefault(key, {})[match["way"]] = _script(file.read_text())
    for (version, slug), ways in sorted(scripts.items()):
        for way in {"up", "down"} - ways.keys():
            raise AssertionError(f"{version:03}_{slug}.{way}.sql is missing")
    migrations = [
        Migration(version, slug, ways["up"], ways["down"])
        for (version, slug), ways in sorted(scripts.items())
    ]
    if [m.version for m in migrations] != list(range(1, len(migrations) + 1)):
        raise AssertionError(
            f"migrations are not numbered 1, 2, 3 …: {[m.name for m in migrations]}"
        )
    return migrations


def check_version(version: int, known: Sequence[Migration]) -> None:
    if not 0 <= version <= len(known):
        raise InvalidValue(f"version {version} does not exist; this release has 0 to {len(known)}")


def way(known: Sequence[Migration], *, since: int, to: int) -> Sequence[tuple[Migration, bool]]:
    """Return the migrations from one version to another, in order. True means up."""
    check_version(since, known)
    check_version(to, known)
    if since <= to:
        return [(migration, True) for migration in known[since:to]]
    return [(migration, False) for migration in reversed(known[to:since])]


def _script(text: str) -> Script:
    header = [line for line in text.splitlines() if line.startswith("--")]
    return Script(
        text,
        transaction="-- transaction: none" not in header,
        breaking="-- breaking: yes" in header,
    )


def check(version: int, *, needed: int, breaking_since: int | None = None) -> None:
    """Reject a schema that is too old, or one that is newer and has a breaking migration."""
    if version < needed:
        raise SchemaTooOld(
            f"the schema is at version {version}, this release needs {needed}; "
            "run: tenure db migrate"
        )
    if breaking_since is not None and breaking_since > needed:
        raise SchemaTooNew(
            f"the schema is at version {version} with a breaking change in {breaking_since}, but "
            f"this release knows only {needed}; upgrade tenure, or migrate back with the newer "
            f"release: tenure db migrate --to {needed}"
        )
