"""Other versions of the package, out of the repository's history, to run beside this one."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path

from support.binaries import ROOT

VERSIONS = ROOT / ".cache" / "versions"
_WITHIN = 60.0


class VersionNotFoundError(Exception):
    """The history at hand does not have it; the message says what to fetch."""


@dataclass(frozen=True)
class Version:
    """The package as it was at a commit."""

    ref: str
    commit: str
    source: Path

    @property
    def environment(self) -> dict[str, str]:
        """What is added to the environment of a Python whose `import tenure` is to be this."""
        others = os.environ.get("PYTHONPATH", "").split(os.pathsep)
        return {"PYTHONPATH": os.pathsep.join([str(self.source), *filter(None, others)])}


def fetch(ref: str, repository: Path = ROOT) -> Version:
    """Return the version of a tag, branch or commit; unpacked into .cache/versions, once."""
    commit = _resolve(ref, repository)
    directory = VERSIONS / commit
    if not directory.exists():
        archive = _git(repository, "archive", "--format=tar", commit, "src")
        if archive.returncode:
            raise VersionNotFoundError(f"{ref} has no src/: {_output(archive)}")
        VERSIONS.mkdir(parents=True, exist_ok=True)
        fresh = Path(tempfile.mkdtemp(prefix="unpacking-", dir=VERSIONS))
        try:
            with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as tar:
                tar.extractall(fresh, filter="data")
            # Whole or not at all. Another process may have been quicker.
            try:
                fresh.rename(directory)
            except OSError:
                if not directory.exists():
                    raise
        finally:
            shutil.rmtree(fresh, ignore_errors=True)
    return Version(ref, commit, directory / "src")


def _resolve(ref: str, repository: Path) -> str:
    found = _git(repository, "rev-parse", "--verify", "--quiet", f"{ref}^{{commit}}")
    if not found.returncode:
        return found.stdout.decode().strip()
    shallow = _git(repository, "rev-parse", "--is-shallow-repository")
    if shallow.returncode:
        raise VersionNotFoundError(
            f"no history to take {ref} from: {_output(shallow)}; "
            "work in a clone, not in an unpacked release"
        )
    if shallow.stdout.strip() == b"true":
        raise VersionNotFoundError(
            f"no {ref} in this clone, which is shallow; run: git fetch --unshallow --tags"
        )
    raise VersionNotFoundError(f"no {ref} in this clone; run: git fetch --tags")


def _git(repository: Path, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        ["git", "-C", str(repository), *arguments],  # noqa: S607 - the git that there is
        check=False,
        capture_output=True,
        timeout=_WITHIN,
    )


def _output(done: subprocess.CompletedProcess[bytes]) -> str:
    return done.stderr.decode(errors="replace").strip()
