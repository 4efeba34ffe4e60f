"""What is checked of which model: with every rule it must hold, with one rule left out it must
break in the way that the rule is there to prevent, and what should happen must be possible."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

Constants = Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """A module with the constants that bound it, its rules as switches, what must hold in each of
    its states, and what must be possible."""

    module: str
    rules: tuple[str, ...]
    invariants: tuple[str, ...]
    behaviours: tuple[str, ...]
    full: Constants
    short: Constants


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One run of TLC: all invariants, which must hold; or the one that `broken` names, which must
    be violated without some rules. `bounds` are in place of the model's own."""

    name: str
    model: Model
    broken: str | None = None
    without: tuple[str, ...] = ()
    bounds: Constants = field(default_factory=dict)
    in_short: bool = True

    @property
    def invariants(self) -> tuple[str, ...]:
        """What TLC is asked about."""
        return (self.broken,) if self.broken else (*self.model.invariants, "Happens")

    def constants(self, *, short: bool) -> Constants:
        """What the module's constants are in this check."""
        bounds = self.model.short if short else self.model.full
        rules = {rule: rule not in self.without for rule in self.model.rules}
        return {**bounds, **rules, **self.bounds}


LEASE = Model(
    module="LeaseProtocol",
    rules=("FenceOn", "TimelineInToken", "GuardRenewByTime", "RescueRechecks", "AnchorAtSend"),
    invariants=(
        *("TypeOK", "OneResult", "NoStaleWrite", "OneBeliever", "StopsInTime", "FencesGrow"),
        *("OutsideInOrder", "AnswersAreTrue", "OneEnd", "CancelSticks", "CapHolds"),
    ),
    behaviours=(
        *("CompletedAfterRescue", "CompletedAcrossFailover", "TwoBelieve", "ForgottenByFailover"),
        *("ToldAgain", "CancelledOnRelease", "Poison"),
    ),
    full={
        "Jobs": ("j1",),
        "Workers": ("w1", "w2"),
        "Lease": 1,
        "Base": 10,
        "MaxPeriods": 3,
        "MaxTimeline": 2,
        "MaxLosses": 2,
    },
    short={
        "Jobs": ("j1",),
        "Workers": ("w1", "w2"),
        "Lease": 1,
        "Base": 10,
        "MaxPeriods": 2,
        "MaxTimeline": 2,
        "MaxLosses": 2,
    },
)
ENQUEUE = Model(
    module="AcknowledgedEnqueue",
    rules=("CancelIsUnknown", "RetryWrites"),
    invariants=("TypeOK", "NothingLost", "OncePerKey", "ResultsHaveJobs"),
    behaviours=("AcknowledgedAndSurvived", "WrittenAnew", "SeenTooEarly", "RetriedAndSurvived"),
    full={
        "Keys": ("k1",),
        "Clients": ("c1", "c2"),
        "MaxWal": 5,
        "MaxWrites": 3,
        "MaxFailovers": 2,
    },
    short={
        "Keys": ("k1",),
        "Clients": ("c1", "c2"),
        "MaxWal": 3,
        "MaxWrites": 3,
        "MaxFailovers": 1,
    },
)


def _broken(name: str, model: Model, invariant: str, *without: str) -> Check:
    return Check(name=name, model=model, broken=invariant, without=without)


CHECKS = (
    Check(name="lease", model=LEASE),
    Check(
        name="lease-longer",
        model=LEASE,
        bounds={"Lease": 2, "MaxPeriods": 2, "MaxTimeline": 3},
        in_short=False,
    ),
    Check(
        name="renewal-after-expiry",
        model=LEASE,
        without=("GuardRenewByTime",),
        bounds=LEASE.short,
        in_short=False,
    ),
    Check(
        name="rescue-without-recheck",
        model=LEASE,
        without=("RescueRechecks",),
        bounds=LEASE.short,
        in_short=False,
    ),
    _broken("settle-without-fence", LEASE, "OneResult", "FenceOn"),
    _broken("token-without-timeline", LEASE, "FencesGrow", "TimelineInToken"),
    _broken("effect-without-timeline", LEASE, "OutsideInOrder", "TimelineInToken"),
    _broken("expiry-not-final", LEASE, "OneBeliever", "GuardRenewByTime", "RescueRechecks"),
    _broken("trust-from-answer", LEASE, "StopsInTime", "AnchorAtSend"),
    Check(name="enqueue", model=ENQUEUE),
    _broken("retry-without-wal", ENQUEUE, "NothingLost", "RetryWrites"),
    _broken("cancelled-wait-acknowledged", ENQUEUE, "NothingLost", "CancelIsUnknown"),
)
