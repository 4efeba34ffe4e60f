"""Which jobs a client asks for: most of them small, some that are a fault in themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from proof.faults import harmful, jobs
from proof.faults.harmful import WAYS

if TYPE_CHECKING:
    from random import Random

    from tenure.task import BoundCall, Registered

KEPT = 3600
# The share of each, in a thousand, if it is chosen; the rest answers at once.
_USUAL = {"enter": 20, "aenter": 30, "touch": 5, "stumble": 10, "slow": 10}
_CAPPED = {"frail": 1, "weary": 5}
_HARM = dict.fromkeys(("block", "hold", "hang", "breed", "fill"), 0.1) | dict.fromkeys(WAYS, 0.02)
_RARE = {"apart": 1} | _HARM
# However few jobs there are, each harmful kind is used: the next one after this many labels.
_APART = 40
_SURELY = {_APART * number: kind for number, kind in enumerate(_HARM, start=1)}


def shares(words: str) -> dict[str, float]:
    """What is asked for: `usual` jobs, `rare` ones too, or as often each of the kinds named."""
    if words in {"usual", "rare"}:
        return _USUAL | _CAPPED | (_RARE if words == "rare" else {})
    kinds = words.split(",")
    return {kind: 1000 / len(kinds) for kind in kinds}


def make(rng: Random, label: int, *, keyed: bool, kinds: dict[str, float]) -> BoundCall[Any]:
    """The call of one job; by its key, if it has one, it can be asked for again."""
    kind = _SURELY.get(label)
    task, arguments = _call(kind, rng) if kind in kinds else _choose(rng, kinds)
    call = task.using(key=str(label), key_for=KEPT) if keyed else task
    return call.bind(label, *arguments)


def _choose(rng: Random, kinds: dict[str, float]) -> tuple[Registered[..., Any], tuple[Any, ...]]:
    point = rng.random() * 1000
    for kind, share in kinds.items():
        point -= share
        if point < 0:
            return _call(kind, rng)
    return jobs.answer, (0.0,)


def _call(kind: str, rng: Random) -> tuple[Registered[..., Any], tuple[Any, ...]]:
    if kind in WAYS:
        return harmful.die, (kind,)
    some = rng.uniform
    calls: dict[str, tuple[Registered[..., Any], tuple[Any, ...]]] = {
        "enter": (jobs.enter, (some(0, 0.2), some(0, 0.1))),
        "aenter": (jobs.aenter, (some(0, 0.2), some(0, 0.1))),
        "touch": (jobs.touch, (rng.randint(2, 8),)),
        "stumble": (jobs.stumble, (rng.randint(1, 3),)),
        "falter": (jobs.stumble, (1, some(0.3, 1))),
        "report": (jobs.report, (some(0.5, 0.8 * jobs.LEASE),)),
        "fall": (jobs.fall, ()),
        "frail": (jobs.frail, (some(0.1, 1.5),)),
        "weary": (jobs.weary, (rng.randint(1, 3),)),
        "quick": (jobs.answer, (0.0,)),
        # Longer than a lease; and longer than a drain's grace.
        "long": (jobs.answer, (some(0.9, 1.15) * jobs.LEASE,)),
        "longer": (jobs.answer, (some(1.6, 1.8) * jobs.LEASE,)),
        "slow": (jobs.answer, (some(0.1, 1.5),)),
        "apart": (jobs.apart, (some(0, 0.3),)),
        "block": (harmful.block, (some(1, 1.5 * jobs.LEASE),)),
        "hold": (harmful.hold, (some(1, 2 * jobs.LEASE),)),
        "hang": (harmful.hang, ()),
        "breed": (harmful.breed, ()),
        "fill": (harmful.fill, ()),
    }
    return calls[kind]
