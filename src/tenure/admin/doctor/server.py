"""The database server: its release, what it forces to disk, its clock."""

from datetime import timedelta

from tenure._model.condition import Condition, ServerSetting
from tenure._model.finding import Fault
from tenure.admin.doctor.findings import Found, fine, in_sql, problem, warning

OLDEST = 150_000
_CLOCKS_AGREE_WITHIN = timedelta(seconds=5)
_DURABILITY = {
    "fsync": (
        Fault.FSYNC_OFF,
        "a machine that loses power loses acknowledged jobs, and may lose the database",
    ),
    "full_page_writes": (
        Fault.FULL_PAGE_WRITES_OFF,
        "a page that was half written when power failed stays torn",
    ),
    "synchronous_commit": (
        Fault.SYNCHRONOUS_COMMIT_OFF,
        "a server that crashes loses jobs that were acknowledged just before",
    ),
}


def release(server: Condition) -> Found:
    """Which one answers, and as whom it knows us."""
    if server.number < OLDEST:
        yield problem(
            "database",
            Fault.SERVER_TOO_OLD,
            f"PostgreSQL {server.version} is older than 15",
            "some statements are not understood by it",
            "upgrade the server to PostgreSQL 15 or newer",
        )
    else:
        yield fine("database", f"PostgreSQL {server.version} answers, as role {server.role}")


def durability(server: Condition) -> Found:
    """Whether what is acknowledged is on disk."""
    off = {name: found for name, found in server.settings.items() if found.value == "off"}
    for name, (fault, why) in _DURABILITY.items():
        if name in off:
            todo = switched_on(server, name, off[name])
            yield problem("durability", fault, f"{name} is off", why, todo)
    if not off.keys() & _DURABILITY.keys():
        yield fine("durability", "what is acknowledged is on disk")


def switched_on(server: Condition, name: str, found: ServerSetting) -> str:
    """What to do about a setting that is off, by where it was set."""
    match found.source:
        case "client":
            return f"take {name} out of the options in the database's URL"
        case "command line":
            return f"take {name} off the server's command line, and restart it"
        case "database":
            return in_sql(f"ALTER DATABASE {server.database} RESET {name}")
        case "user":
            return in_sql(f"ALTER ROLE {server.role} RESET {name}")
        case "database user":
            return in_sql(f"ALTER ROLE {server.role} IN DATABASE {server.database} RESET {name}")
        case _:
            return in_sql(f"ALTER SYSTEM SET {name} = 'on'", "SELECT pg_reload_conf()")


def clock(ahead: timedelta, took: timedelta) -> Found:
    """Whether this machine's and the server's agree."""
    if abs(ahead) <= _CLOCKS_AGREE_WITHIN + took:
        yield fine("clock", "this machine's clock and the database's agree")
        return
    seconds = abs(ahead).total_seconds()
    yield warning(
        "clock",
        Fault.CLOCK_DIFFERS,
        f"the database's clock is {seconds:.0f} s {'ahead' if ahead > timedelta(0) else 'behind'}",
        "leases do not depend on it, but a run_at that is worked out here is wrong by as much",
        "let both synchronise by NTP",
    )
