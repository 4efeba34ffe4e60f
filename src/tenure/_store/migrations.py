"""Migrations: which there are, which are due. What they do is the business of each store."""

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
    """One direction of a migration. `transaction` is False where the header says so."""

    text: str
    transaction: bool
    breaking: bool


@dataclass(frozen=True, slots=True)
class Migration:
    """One step of the schema, there and back."""

    version: int
    slug: str
    up: Script
    down: Script

    @property
    def name(self) -> str:
        """The migration's file name without its direction."""
        return f"{self.version:03}_{self.slug}"


def load(directory: "Traversable") -> Sequence[Migration]:
    """All migrations of a directory in order. A gap, a double or a missing way is a defect."""
    scripts: dict[tuple[int, str], dict[str, Script]] = {}
    for file in directory.iterdir():
        if found := _FILE.fullmatch(file.name):
            key = int(found["version"]), found["slug"]
            scripts.setdefault(key, {})[found["way"]] = _script(file.read_text())
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
    """Refuse a version that this release does not know."""
    if not 0 <= version <= len(known):
        raise InvalidValue(f"there is no version {version}; this release knows 0 to {len(known)}")


def way(known: Sequence[Migration], *, since: int, to: int) -> Sequence[tuple[Migration, bool]]:
    """The migrations that lead from one version to another, in order; True is up."""
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


def check(found: int, *, needed: int, breaking_since: int | None = None) -> None:
    """Refuse to work with a schema that is too old, or so new that this release cannot know it.

    A schema that is newer is fine as long as nothing in it, since ours, was breaking.
    """
    if found < needed:
        raise SchemaTooOld(
            f"schema is at version {found}, this release needs {needed}; run: tenure db migrate"
        )
    if breaking_since is not None and breaking_since > needed:
        raise SchemaTooNew(
            f"schema is at version {found} and has a breaking change since {breaking_since}, "
            f"this release knows {needed}; upgrade tenure, or go back, with the newer "
            f"release, by: tenure db migrate --to {needed}"
        )
