"""Build the files of a release from a commit, and verify them by building them again.

`python -m support.release build` writes the sdist, the wheel, the SBOM and SHA256SUMS to dist/.
`python -m support.release verify` checks the sums, then builds the commit that the SBOM names once
more and compares every file. An argument names another directory.
"""

import hashlib
import io
import json
import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from support.binaries import ROOT
from support.sbom import sbom

SUMS = "SHA256SUMS"
SBOM = "sbom.cdx.json"


def build(directory: Path, commit: str = "HEAD") -> list[Path]:
    """Build a commit's files into a directory that has none. Untracked changes don't enter."""
    directory.mkdir(parents=True, exist_ok=True)
    if present := sorted(path.name for path in directory.iterdir()):
        raise SystemExit(f"{directory} must be empty, got {present[0]}; remove it, then build")
    commit = _git("rev-parse", f"{commit}^{{commit}}").decode().strip()
    built_at = int(_git("log", "-1", "--format=%ct", commit))
    with tempfile.TemporaryDirectory(prefix="tenure-release-") as temporary:
        tree = Path(temporary)
        with tarfile.open(fileobj=io.BytesIO(_git("archive", commit))) as archive:
            archive.extractall(tree, filter="data")
        # The wheel is built from the sdist, so the sdist is complete.
        subprocess.run(
            [sys.executable, "-m", "build", "--no-isolation", "--outdir", directory, tree],
            check=True,
            stdout=subprocess.DEVNULL,
            env=os.environ | {"SOURCE_DATE_EPOCH": str(built_at)},
        )
        (directory / SBOM).write_text(sbom(tree, built_at=built_at, commit=commit))
    files = sorted(directory.iterdir())
    (directory / SUMS).write_text("".join(f"{_sha256(file)}  {file.name}\n" for file in files))
    return files


def verify(directory: Path) -> list[str]:
    """Return the problems of a release's files: none if all is well."""
    try:
        listed: dict[str, str] = {}
        for line in (directory / SUMS).read_text().splitlines():
            digest, name = line.split("  ", 1)
            listed[name] = digest
        component = json.loads((directory / SBOM).read_text())["metadata"]["component"]
        commit = component["properties"][0]["value"]
    except (OSError, ValueError, LookupError, TypeError) as error:
        return [f"{SUMS} and {SBOM} cannot be read: {error}"]
    there = {file.name for file in directory.iterdir()} - {SUMS}
    problems = [f"{name}: listed, but missing" for name in sorted(listed.keys() - there)]
    problems += [f"{name}: not listed" for name in sorted(there - listed.keys())]
    problems += [
        f"{name}: differs from its checksum"
        for name in sorted(listed.keys() & there)
        if _sha256(directory / name) != listed[name]
    ]
    with tempfile.TemporaryDirectory(prefix="tenure-verify-") as temporary:
        again = build(Path(temporary), commit)
        names = {file.name for file in again}
        problems += [f"{name}: not a file of commit {commit}" for name in sorted(there - names)]
        problems += [
            f"{file.name}: differs from one built from commit {commit}"
            for file in again
            if not (directory / file.name).exists()
            or _sha256(directory / file.name) != _sha256(file)
        ]
    return problems


def main(arguments: list[str]) -> int:
    """Run `build` or `verify`, and return the exit code."""
    directory = Path(arguments[1]) if len(arguments) > 1 else ROOT / "dist"
    match arguments[:1]:
        case ["build"]:
            for file in build(directory):
                print(f"{_sha256(file)}  {file}")
            return 0
        case ["verify"]:
            problems = verify(directory)
            print("\n".join(problems) or f"{directory}: every file is as its commit builds it")
            return 1 if problems else 0
        case _:
            raise SystemExit("usage: python -m support.release build|verify [DIRECTORY]")


def _git(*arguments: str) -> bytes:
    done = subprocess.run(["git", "-C", str(ROOT), *arguments], check=True, capture_output=True)  # noqa: S607 - the git of the PATH
    return done.stdout


def _sha256(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
