"""Run the tests that failed in the last run once more, alone and one by one: `just rerun-failed`.

For CI: a real terminal or a real browser can miss a deadline on a busy machine. A defect fails
twice. The first failure stays in the log above.
"""

import json
import subprocess
import sys
from pathlib import Path

_FAILED = Path(".pytest_cache/v/cache/lastfailed")
_MOST = 5


def main() -> int:
    """Return the exit code of the second run, or 1 if there is nothing to run again."""
    failed = json.loads(_FAILED.read_text()) if _FAILED.exists() else {}
    if not 0 < len(failed) <= _MOST:
        sys.stderr.write(f"{len(failed)} tests failed: only 1 to {_MOST} are run again\n")
        return 1
    sys.stderr.write("\n  ".join(["once more, alone:", *sorted(failed)]) + "\n")
    command = [sys.executable, "-m", "pytest", "--last-failed", *sys.argv[1:]]
    return subprocess.run(command, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
