"""The lowest versions that pyproject.toml declares, locked, so that suites can run on them.

`python -m support.minimums` prints the constraints for that lock: the versions of
requirements-dev.lock, without the packages that pyproject.toml gives a minimum.
"""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
LOCK = ROOT / "support/minimums/requirements.lock"
# opentelemetry-sdk has the version of opentelemetry-api.
_TIED = {"opentelemetry-sdk", "opentelemetry-semantic-conventions"}


def declared() -> dict[str, str]:
    """Return the minimum of each dependency, in pyproject.toml's order."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lines = [*project["dependencies"]]
    for extra in project["optional-dependencies"].values():
        lines += extra
    minimums = {}
    for line in lines:
        match = re.fullmatch(r"([\w-]+)(?:\[\w+\])?>=([\d.]+)", line)
        if match is None:
            raise ValueError(f"a dependency must be NAME>=VERSION, got {line!r}; write it so")
        minimums[match[1].lower()] = match[2]
    return minimums


def locked(lock: Path) -> dict[str, str]:
    """Return the versions of a lock."""
    return dict(re.findall(r"^([\w.-]+)(?:\[[\w,]+\])?==([\w.]+)", lock.read_text(), re.MULTILINE))


def constraints() -> str:
    """Return the constraints: the versions of the other lock, for all but the minimums."""
    own = {*declared(), *_TIED, "psycopg-binary"}
    versions = locked(ROOT / "requirements-dev.lock")
    return "".join(f"{name}=={version}\n" for name, version in versions.items() if name not in own)
