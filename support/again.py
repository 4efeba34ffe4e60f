"""Runs once more, alone and one by one, what failed in the last run of the tests.

For CI on a shared machine: some tests see real processes meet real deadlines, and a neighbour's
load can make them miss one. A defect fails twice. What failed first stays in the log above.
"""

import json
import subprocess
import sys
from pathlib import Path

_FAILED = Path(".pytest_cache/v/cache/lastfailed")
_MOST = 5


def main() -> int:
    """The exit code of the second run; that of a failure where there is nothing to run again."""
    failed = json.loads(_FAILED.read_text()) if _FAILED.exists() else {}
    if not 0 < len(failed) <= _MOST:
        sys.stderr.write(f"{len(failed)} failed: not to be run again (1 to {_MOST} are)\n")
        return 1
    sys.stderr.write("\n  ".join(["once more, alone:", *sorted(failed)]) + "\n")
    command = [sys.executable, "-m", "pytest", "--last-failed", *sys.argv[1:]]
    return subprocess.run(command, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
