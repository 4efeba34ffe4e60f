"""`python -m proof [SUBJECT …]`: prove one thing, or all; the exit code is 1 if a bar is missed."""

from __future__ import annotations

import sys
from importlib import import_module

from proof import shutdown

SUBJECTS = {
    "models": "proof.models.suite",
    "crash": "proof.crash.suite",
    "batteries": "proof.batteries",
    "faults": "proof.faults.suite",
    "failover": "proof.failover.suite",
    "pauses": "proof.pauses.suite",
    "partitions": "proof.partitions.suite",
    "poison": "proof.poison.suite",
    "bugs": "proof.mutations.suite",
    "schedules": "proof.schedules.suite",
    "operations": "proof.operations",
    "erase": "proof.erase",
    "shell": "proof.shell",
    "notices": "proof.notices",
    "horizon": "proof.horizon",
    "forged": "proof.forged",
    "webhooks": "proof.webhooks.suite",
    "malformed": "proof.malformed",
    "abuse": "proof.abuse.suite",
    "peers": "proof.peers.suite",
    "crowd": "proof.crowd.suite",
    "innocents": "proof.justice.innocents",
    "frozen": "proof.justice.frozen",
    "outages": "proof.justice.outages",
    "spot": "proof.justice.spot",
    "suspects": "proof.justice.suspects",
    "on_loss": "proof.justice.on_loss",
    "blocked": "proof.justice.blocked",
    "http_stops": "proof.justice.http_stops",
    "totals": "proof.totals",
}
# What batteries include, and what is said by hand.
_NOT_BY_ITSELF = {"crowd", "totals"}
OURSELVES: tuple[str, ...] = (sys.executable, "-m", "proof")


def main() -> int:
    """Hand over to the subject; what follows its name is its own. Without one, to all of them.
    A signal meanwhile leaves through the same cleanup."""
    shutdown.leave_on_signal()
    subject, *rest = sys.argv[1:] or [""]
    if subject in SUBJECTS:
        return _prove(subject, rest)
    if subject not in {"", "--short"}:
        sys.stderr.write(f"just prove [{' | '.join(SUBJECTS)}] [--short] …\n")
        return 2
    missed = [
        name for name in SUBJECTS if name not in _NOT_BY_ITSELF and _alone(name, sys.argv[1:])
    ]
    print(f"\nmissed: {', '.join(missed)}" if missed else "\nevery subject is proven")
    return 1 if missed else 0


def _prove(subject: str, words: list[str]) -> int:
    code: int = import_module(SUBJECTS[subject]).main(words)
    return code


def _alone(subject: str, words: list[str]) -> int:
    """In a process of its own: subjects take some environment into their hands."""
    print(f"\n# {subject}", flush=True)
    return shutdown.run([*OURSELVES, subject, *words])


if __name__ == "__main__":
    sys.exit(main())
