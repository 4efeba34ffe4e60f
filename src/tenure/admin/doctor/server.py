"""Check the PostgreSQL server, wakeups and Redis."""

from datetime import timedelta

from tenure._model.diagnostics import (
    Finding,
    FindingCode,
    Level,
    NotifyQueue,
    ServerInfo,
    ServerSetting,
)
from tenure._store.engine import Engine
from tenure.admin.doctor.findings import Findings, fine, in_sql, problem, warning
from tenure.config import DEFAULTS
from tenure.errors import StoreError

OLDEST = 150_000
_CLOCKS_AGREE_WITHIN = timedelta(seconds=5)
_DURABILITY = {
    "fsync": (
        FindingCode.FSYNC_OFF,
        "a power failure loses committed jobs, and may corrupt the database",
    ),
    "full_page_writes": (
        FindingCode.FULL_PAGE_WRITES_OFF,
        "a page that was half written at a power failure stays corrupt",
    ),
    "synchronous_commit": (
        FindingCode.SYNCHRONOUS_COMMIT_OFF,
        "a crash of the server loses jobs that were committed just before",
    ),
}


def release(server: ServerInfo) -> Findings:
    """Check the PostgreSQL version."""
    if server.number < OLDEST:
        yield problem(
            "database",
            FindingCode.SERVER_TOO_OLD,
            f"PostgreSQL {server.version} is older than 15",
            "it does not support some statements of Tenure",
            "upgrade the server to PostgreSQL 15 or newer",
        )
    else:
        yield fine("database", f"PostgreSQL {server.version} answers (role {server.role})")


def durability(server: ServerInfo) -> Findings:
    """Check that commits are written to disk."""
    off = {name: row for name, row in server.settings.items() if row.value == "off"}
    for name, (fault, why) in _DURABILITY.items():
        if name in off:
            todo = switched_on(server, name, off[name])
            yield problem("durability", fault, f"{name} is off", why, todo)
    if not off.keys() & _DURABILITY.keys():
        yield fine("durability", "commits are written to disk")


def switched_on(server: ServerInfo, name: str, setting: ServerSetting) -> str:
    """Explain how to turn on a setting, depending on where it was turned off."""
    match setting.source:
        case "client":
            return f"remove {name} from the options in the database URL"
        case "command line":
            return f"remove {name} from the command line of the server, and restart it"
        case "database":
            return in_sql(f"ALTER DATABASE {server.database} RESET {name}")
        case "user":
            return in_sql(f"ALTER ROLE {server.role} RESET {name}")
        case "database user":
            return in_sql(f"ALTER ROLE {server.role} IN DATABASE {server.database} RESET {name}")
        case _:
            return in_sql(f"ALTER SYSTEM SET {name} = 'on'", "SELECT pg_reload_conf()")


def clock(ahead: timedelta, took: timedelta) -> Findings:
    """Compare this machine's clock with the server's."""
    if abs(ahead) <= _CLOCKS_AGREE_WITHIN + took:
        yield fine("clock", "the clocks of this machine and the database agree")
        return
    seconds = abs(ahead).total_seconds()
    yield warning(
        "clock",
        FindingCode.CLOCK_DIFFERS,
        f"the database clock is {seconds:.0f} s {'ahead' if ahead > timedelta(0) else 'behind'}",
        "leases are not affected, but a run_at computed on this machine is off by that much",
        "synchronize both with NTP",
    )


# Above this, enqueues send no wakeups.
_MUCH = 0.5
_TOO_MUCH = 0.9
_POLL = f"{DEFAULTS.poll.total_seconds():g} s"


def notify_queue(queue: NotifyQueue) -> Findings:
    """Check that the server's notification queue isn't full."""
    if queue.usage <= _MUCH:
        return
    what = f"the NOTIFY queue of PostgreSQL is {queue.usage:.0%} full"
    todo = "end the listening session with the oldest open transaction"
    if queue.pid is not None:
        since = "" if queue.since is None else f", since {queue.since:%Y-%m-%d %H:%M:%S}Z"
        what += f"; the oldest open transaction is pid {queue.pid}"
        what += f" ({queue.application or 'unknown'}{since})"
        todo = in_sql(f"SELECT pg_terminate_backend({queue.pid})")
    why = (
        "a session that listens inside an open transaction blocks it. Above "
        f"{_MUCH:.0%} Tenure sends no wakeups, and workers poll every {_POLL}. "
        "When it is full, every COMMIT of a transaction with a NOTIFY fails"
    )
    level = Level.PROBLEM if queue.usage > _TOO_MUCH else Level.WARNING
    yield Finding("wakeups", level, what, why, todo, FindingCode.NOTIFY_QUEUE_FULL)


def wakeups(engine: Engine) -> Findings:
    """Check that LISTEN and NOTIFY work between two connections."""
    try:
        check = engine.check_listen()
    except StoreError as error:
        yield problem(
            "wakeups",
            FindingCode.LISTEN_FAILED,
            f"LISTEN could not be tested: {error}",
            f"workers without LISTEN poll every {_POLL}",
            "raise max_connections of the server",
        )
        return
    if check.lag is not None:
        later = check.lag / timedelta(milliseconds=1)
        yield fine("wakeups", f"notifications arrive within {later:,.0f} ms")
    elif check.behind_pooler and engine.notifier is not None:
        yield fine(
            "wakeups",
            "a connection pooler is in front of PostgreSQL. Redis wakes workers instead of LISTEN",
        )
    elif check.behind_pooler:
        yield warning(
            "wakeups",
            FindingCode.POOLER,
            "a connection pooler is in front of PostgreSQL, so LISTEN is not used",
            f"workers poll every {_POLL}. Everything else works",
            "set TENURE_REDIS_URL, or connect workers to PostgreSQL directly",
        )
    else:
        yield problem(
            "wakeups",
            FindingCode.NOT_HEARD,
            "notifications do not arrive",
            f"workers poll every {_POLL}",
            "connect workers to PostgreSQL directly, or set TENURE_REDIS_URL",
        )


def redis(engine: Engine) -> Findings:
    """Check the configured Redis."""
    if engine.notifier is None:
        return
    try:
        engine.notifier.check()
    except StoreError as error:
        yield problem(
            "redis",
            FindingCode.REDIS_AWAY,
            str(error),
            "Redis only wakes workers. They use PostgreSQL or poll instead, and no job is at risk",
            "start Redis, or fix TENURE_REDIS_URL",
        )
    else:
        yield fine("redis", "Redis accepts wakeups")
