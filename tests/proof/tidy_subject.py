"""`just prove` with a subject of the tests' own: `python -m tests.proof.tidy_subject [tidy] …`.

The subject leaves files in TIDY_IN that say how far it is. TIDY_TAKES is how many seconds it takes
to clean up.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from proof import __main__ as prove

_SELF = "tests.proof.tidy_subject"
PLACE = Path(os.environ["TIDY_IN"])


def main(argv: list[str]) -> int:
    """Be busy until told to leave."""
    del argv
    try:
        (PLACE / "pid").write_text(str(os.getpid()))
        (PLACE / "begun").touch()
        time.sleep(600)
    finally:
        (PLACE / "ending").touch()
        time.sleep(float(os.environ["TIDY_TAKES"]))
        (PLACE / "ended").touch()
    return 0


if __name__ == "__main__":
    # The subjects are this and, after it, one that must not begin.
    prove.SUBJECTS = {"tidy": _SELF, "next": "no_such_module"}
    prove.OURSELVES = (sys.executable, "-m", _SELF)
    sys.exit(prove.main())
