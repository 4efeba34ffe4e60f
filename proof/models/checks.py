"""What is checked of which model: with every rule it must hold, with one rule left out it must
break in the way that the rule is there to prevent, and what should happen must be possible."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

Constants = Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """A module with the constants that bound it, its rules as switches, what must hold in each of
    its states or, as a property, of each endless run, and what must be possible."""

    module: str
    rules: tuple[str, ...]
    invariants: tuple[str, ...]
    behaviours: tuple[str, ...]
    full: Constants
    short: Constants
    properties: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One run of TLC: all invariants and properties, which must hold; or the one that `broken`
    names, which must be violated without some rules. `bounds` are in place of the model's own."""

    name: str
    model: Model
    broken: str | None = None
    without: tuple[str, ...] = ()
    bounds: Constants = field(default_factory=dict)
    in_short: bool = True

    @property
    def invariants(self) -> tuple[str, ...]:
        """What TLC is asked about every state."""
        if self.broken:
            return () if self.broken in self.model.properties else (self.broken,)
        return (*self.model.invariants, "Happens")

    @property
    def properties(self) -> tuple[str, ...]:
        """What TLC is asked about every endless run."""
        if self.broken:
            return tuple({self.broken} & set(self.model.properties))
        return self.model.properties

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
# No rule compares a counter with anything but 0, 2 and its cap. So a cap of worker losses that
# is one above the 2 that makes a suspect is enough. MaxDeaths exceeds MaxWorkerLosses + 1: the
# cap of worker losses comes first, also after an unknown loss, unless there is progress.
_COUNTERS: Constants = {
    "Jobs": ("j1", "j2"),
    "Workers": ("w1", "w2"),
    "Pills": ("j1",),
    "Bombs": (),
    "Movers": (),
    "Raisers": (),
    "Once": (),
    "Parents": True,
    "OwnProcesses": 1,
    "AloneFrom": 2,
    "MaxAttempts": 2,
    "MaxLosses": 2,
    "MaxWorkerLosses": 3,
    "MaxDeaths": 5,
}
_SHORT: Constants = {"MaxDeaths": 4}

# A pill that may move its cursor, next to an innocent that may.
PILL = Model(
    module="LossCounters",
    rules=(
        *("LossKeepsAttempt", "TwoLossCounters", "UnknownNotCounted", "RenewalMeansBegun"),
        *("ConfirmAfterDeath", "ConfirmOnce", "LossFailsOnce", "SharedSuspects", "ReturnedCounts"),
        *("SuspicionStays", "LateSuspectsAlone", "BareSuspectsAlone", "HoldersFirst"),
        *("ProgressResets", "DeathsStay"),
    ),
    invariants=(
        *("TypeOK", "NoInnocentFails", "BeginsOnce", "CapsHold", "OnlyBegunCounted"),
        *("EveryCrashCounts", "UnknownOnce", "OneSharedCrash"),
    ),
    behaviours=(
        *("PillFound", "EndedByDeaths", "WorkerLossesEndIt", "CompletedAlone", "InnocentAtCap"),
        "SuspectWaits",
    ),
    full={**_COUNTERS, "Movers": ("j1", "j2")},
    short={**_COUNTERS, **_SHORT, "Movers": ("j1",)},
)
# A job with on_loss="fail" and one attempt, which may raise, next to a pill.
ONCE = replace(
    PILL,
    behaviours=(
        *("PillFound", "EndedByDeaths", "WorkerLossesEndIt", "OnceQueuedAgain", "OnceLost"),
        "Raised",
    ),
    full={**_COUNTERS, "Once": ("j2",), "Raisers": ("j2",), "Movers": ("j1",)},
    short={**_COUNTERS, "Once": ("j2",), "Raisers": ("j2",), "MaxWorkerLosses": 2, "MaxDeaths": 3},
)
# A job that takes its whole worker.
BOMB = replace(
    PILL,
    invariants=(*PILL.invariants, "BombsFailNoInnocent"),
    behaviours=("EndedByDeaths", "WorkerLossesEndIt", "CompletedAlone", "InnocentAtCap"),
    full={**_COUNTERS, "Pills": (), "Bombs": ("j1",)},
    short={**_COUNTERS, **_SHORT, "Pills": (), "Bombs": ("j1",)},
)
# app.run() and HTTP workers.
BARE = replace(
    PILL,
    behaviours=("EndedByDeaths", "WorkerLossesEndIt", "CompletedAlone", "InnocentAtCap"),
    full={**_COUNTERS, "Parents": False},
    short={**_COUNTERS, **_SHORT, "Parents": False},
)
_ENDING: Constants = {"Movers": ("j1", "j2"), "MaxWorkerLosses": 2, "MaxDeaths": 3}
ENDING = replace(
    PILL,
    properties=("EveryJobEnds",),
    full={**_COUNTERS, **_ENDING},
    short={**_COUNTERS, **_ENDING, "Workers": ("w1",)},
)
# The rule before there were three counters: one counter for every loss, which also charges the
# attempt, whether the job had begun or not.
_BEFORE = (
    *("LossKeepsAttempt", "TwoLossCounters", "UnknownNotCounted", "ReturnedCounts"),
    *("HoldersFirst", "ProgressResets"),
)
# The second loss makes a suspect here, and needs a worker of its own: both rules say the same.
_TOGETHER = ("BareSuspectsAlone", "LateSuspectsAlone")
# One innocent and no other job: only its worker is killed, or the database is away.
_ALONE: Constants = {"Jobs": ("j2",), "Pills": ()}


def _broken(
    name: str, model: Model, invariant: str, *without: str, bounds: Constants | None = None
) -> Check:
    return Check(name=name, model=model, broken=invariant, without=without, bounds=bounds or {})


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
    Check(name="pill", model=PILL),
    Check(
        name="pill-of-three",
        model=ONCE,
        bounds={"Jobs": ("j1", "j2", "j3"), "Once": ("j3",), "Raisers": ("j3",), "Movers": ()}
        | {"MaxWorkerLosses": 2, "MaxDeaths": 3},
        in_short=False,
    ),
    Check(name="once", model=ONCE),
    Check(name="bomb", model=BOMB),
    Check(name="bare", model=BARE),
    Check(name="ending", model=ENDING),
    _broken("bomb-takes-neighbor", BOMB, "BombsFailNoInnocent", "LateSuspectsAlone"),
    _broken(
        "attempt-charged", PILL, "NoInnocentFails", "LossKeepsAttempt", bounds={"MaxAttempts": 1}
    ),
    _broken("one-loss-counter", PILL, "NoInnocentFails", "TwoLossCounters", bounds=_ALONE),
    _broken("unknown-counted", PILL, "OnlyBegunCounted", "UnknownNotCounted", bounds=_ALONE),
    _broken("waiting-taken-as-begun", PILL, "OnlyBegunCounted", "RenewalMeansBegun", bounds=_ALONE),
    _broken("unknown-every-time", BOMB, "UnknownOnce", "ConfirmAfterDeath"),
    _broken("once-without-confirm", ONCE, "BeginsOnce", "ConfirmOnce"),
    _broken("one-attempt-alone", ONCE, "BeginsOnce", "LossFailsOnce"),
    _broken("no-suspects", PILL, "NoInnocentFails", "SharedSuspects"),
    _broken("crash-after-return", PILL, "EveryCrashCounts", "ReturnedCounts"),
    _broken("crash-after-return-forever", ENDING, "EveryJobEnds", "ReturnedCounts"),
    _broken("suspicion-ends-with-progress", PILL, "OneSharedCrash", "SuspicionStays"),
    _broken("bare-suspects-together", BARE, "NoInnocentFails", *_TOGETHER),
    _broken("rescue-before-holder", PILL, "NoInnocentFails", "HoldersFirst", bounds=_ALONE),
    _broken(
        *("progress-ignored", PILL, "NoInnocentFails", "ProgressResets"),
        bounds={**_ALONE, "Movers": ("j2",)},
    ),
    _broken("rule-before", PILL, "NoInnocentFails", *_BEFORE),
    _broken("deaths-reset", ENDING, "EveryJobEnds", "DeathsStay", bounds={"Jobs": ("j1",)}),
)
