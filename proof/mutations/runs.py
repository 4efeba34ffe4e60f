"""The runs that must notice the bugs: small, and the same for as many bugs as possible."""

from __future__ import annotations

from proof.mutations.bug import Run

_SEED = 7


def _faults(name: str, words: str, number: int, only: str | None = None) -> Run:
    """Runs of the mixed bed are told apart by their seeds, which name their reports."""
    usual = f"{words} --end-within 60".split()
    one = ("--only", only) if only else ()
    report = "faults/leases-{seed}.json"
    return Run(name, ("faults", "leases", *usual, *one), report, seed=_SEED + number)


def _suite(name: str, path: str) -> Run:
    return Run(name, ("pytest", path))


# Every nemesis of the world `leases`, and handlers of each kind.
LEASES = _faults(
    "leases",
    "--jobs 360 --rate 6 --every 3 --kinds quick,enter,aenter,slow,falter,report",
    number=0,
)
# No worker is struck down: a draining one keeps its jobs, or returns them.
DEPLOYS = _faults(
    "deploys", "--jobs 80 --rate 3 --every 7 --kinds long,longer", number=1, only="rolling restart"
)
# Small jobs in small batches: claims meet each other all the time.
CLAIMS = _faults("claims", "--jobs 1500 --rate 150 --kinds quick", number=3, only="rolling restart")
# Jobs that fail for good and are brought back from the dead letters.
REVIVALS = _faults(
    "revivals", "--jobs 60 --rate 4 --every 15 --kinds fall", number=2, only="rolling restart"
)
# Handlers that report ten times a second, and all wake up past the end of their leases.
REPORTS = _faults(
    "reports",
    "--jobs 240 --rate 4 --every 5 --kinds report",
    number=4,
    only="all workers suspended past the lease",
)
# Jobs whose own process may die once, or that are tried twice, and workers that die.
CAPS = _faults(
    "caps",
    "--jobs 160 --rate 4 --every 4 --kinds frail,weary",
    number=5,
    only="kill -9 of a worker",
)
CANCELLED = Run(
    "cancelled",
    ("failover", "cancelled", "--short"),
    "failover.json",
    {"I1": ("false acknowledgements",)},
)
ASYNCHRONOUS = Run(
    "asynchronous",
    ("failover", "asynchronous", "--short"),
    "failover.json",
    {"I8": ("claims after a failover with a token from before", "fences handed out twice")},
)
# Hundreds of leases slept past, some inside an open transaction; then their holders continue.
PAUSES = Run(
    "pauses",
    ("pauses", "--leases", "600"),
    "pauses.json",
    {
        "I2": ("results not by the last token", "results of another running period"),
        "I4": ("jobs without exactly one ledger row", "ledger rows by a lease that was lost"),
    },
)
# Handlers that leave effects elsewhere, and can reach the database no more.
PARTITIONS = Run(
    "partitions",
    ("partitions", "--losses", "150"),
    "partitions.json",
    {"I5": ("running periods with an effect after their lease's end",)},
)

_TICKS = {
    "I7": (
        "ticks with two jobs",
        "ticks with no job and no reason",
        "jobs whose tick row is missing or says otherwise",
    )
}
OUTAGE = Run("outage", ("schedules", "outage", "--short"), "schedules.json", _TICKS)

# Races too narrow for a run of a minute to meet them every time.
OWNERS = _suite("renewing, by its suite", "tests/conformance/test_renew.py")
# A worker stops renewing earlier than a renewal may wait: together they hide this one.
RESCUING = _suite("rescuing, by its suite", "tests/races/test_rescuing.py")
# No lease is lost by it: a handler that would have ended in time is stopped before.
DRAINING = _suite("draining, by its suite", "tests/worker/test_draining.py")
LIMITS = _suite("limits, by its suite", "tests/races/test_limits.py")
# Only a firing that comes late meets a tick that was recorded meanwhile.
RECORDED = _suite("recorded ticks, by their suite", "tests/conformance/test_firing.py")
FIRING = _suite("firing, by its suite", "tests/races/test_firing.py")

# Of the counters, what no job's end shows within a minute.
COUNTERS = _suite("counters, by their suite", "tests/conformance/test_loss_counters.py")

# A claim must be under way at the instant at which a handler begins to block its loop.
ARRIVING = _suite(
    "arriving claims, by their suite", "tests/worker/test_claims_on_service_thread.py"
)


def _justice(name: str, **figures: tuple[str, ...]) -> Run:
    """Innocents and guilty jobs under crashes, kills and outages."""
    return Run(name, (name, "--short"), f"{name}.json", figures)


_PAID = ("innocents that failed", "innocents charged an attempt")
INNOCENTS = _justice(
    "innocents",
    I6=("pills that did not end", "innocents that have not ended"),
    I9=(
        *_PAID,
        "pills that ended otherwise than as poison",
        "pills not ended by exactly 3 deaths of their own process",
    ),
)
SPOT = _justice("spot", I9=_PAID)
OUTAGES = _justice("outages", I9=_PAID)
ON_LOSS = _justice("on_loss", I9=("handlers that began twice",))
FROZEN = _justice(
    "frozen",
    I5=("effects after a lease's end",),
    I6=("children that stood still for good",),
)
HTTP_STOPS = _justice("http_stops", I3=("jobs that ran twice side by side", "leases lost"))
