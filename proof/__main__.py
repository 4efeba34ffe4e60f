"""`python -m proof SUBJECT …`: prove one thing; the exit code is 1 if a bar is missed."""

from __future__ import annotations

import sys
from importlib import import_module

SUBJECTS = {
    "crash": "proof.crash.suite",
    "schedules": "proof.schedules.suite",
    "batteries": "proof.batteries",
    "crowd": "proof.crowd",
}


def main() -> int:
    """Hand over to the subject; what follows its name is its own."""
    subject, *rest = sys.argv[1:] or [""]
    if subject not in SUBJECTS:
        sys.stderr.write(f"just prove {' | '.join(SUBJECTS)} [--short] …\n")
        return 2
    code: int = import_module(SUBJECTS[subject]).main(rest)
    return code


if __name__ == "__main__":
    sys.exit(main())
