"""Checks of the server and of wakeups."""

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
        "a machine that loses power loses acknowledged jobs, and may lose the database",
    ),
    "full_page_writes": (
        FindingCode.FULL_PAGE_WRITES_OFF,
        "a page that was half written when power failed stays torn",
    ),
    "synchronous_commit": (
        FindingCode.SYNCHRONOUS_COMMIT_OFF,
        "a server that crashes loses jobs that were acknowledged just before",
    ),
}


def release(server: ServerInfo) -> Findings:
    """Which one answers, and as whom it knows us."""
    if server.number < OLDEST:
        yield problem(
            "database",
            FindingCode.SERVER_TOO_OLD,
            f"PostgreSQL {server.version} is older than 15",
            "some statements are not understood by it",
            "upgrade the server to PostgreSQL 15 or newer",
        )
    else:
        yield fine("database", f"PostgreSQL {server.version} answers, as role {server.role}")


def durability(server: ServerInfo) -> Findings:
    """Whether what is acknowledged is on disk."""
    off = {name: found for name, found in server.settings.items() if found.value == "off"}
    for name, (fault, why) in _DURABILITY.items():
        if name in off:
            todo = switched_on(server, name, off[name])
            yield problem("durability", fault, f"{name} is off", why, todo)
    if not off.keys() & _DURABILITY.keys():
        yield fine("durability", "what is acknowledged is on disk")


def switched_on(server: ServerInfo, name: str, found: ServerSetting) -> str:
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


def clock(ahead: timedelta, took: timedelta) -> Findings:
    """Whether this machine's and the server's agree."""
    if abs(ahead) <= _CLOCKS_AGREE_WITHIN + took:
        yield fine("clock", "this machine's clock and the database's agree")
        return
    seconds = abs(ahead).total_seconds()
    yield warning(
        "clock",
        FindingCode.CLOCK_DIFFERS,
        f"the database's clock is {seconds:.0f} s {'ahead' if ahead > timedelta(0) else 'behind'}",
        "leases do not depend on it, but a run_at that is worked out here is wrong by as much",
        "let both synchronise by NTP",
    )


# From here on enqueues send no wakeups.
_MUCH = 0.5
_TOO_MUCH = 0.9
_POLL = f"{DEFAULTS.poll.total_seconds():g} s"


def notify_queue(queue: NotifyQueue) -> Findings:
    """Whether the server's queue of notifications is emptied."""
    if queue.usage <= _MUCH:
        return
    what = f"the server's NOTIFY queue is {queue.usage:.0%} full"
    todo = "end the session that listens and has been in a transaction for the longest time"
    if queue.pid is not None:
        since = "" if queue.since is None else f", since {queue.since:%Y-%m-%d %H:%M:%S}Z"
        what += f"; the oldest open transaction is pid {queue.pid}"
        what += f" ({queue.application or 'unknown'}{since})"
        todo = in_sql(f"SELECT pg_terminate_backend({queue.pid})")
    why = (
        "a session that listens inside an open transaction keeps it from being emptied: from "
        f"{_MUCH:.0%} on Tenure sends no wakeups, and workers poll, every {_POLL} at the most; "
        "when it is full, every COMMIT of a transaction with a NOTIFY fails"
    )
    level = Level.PROBLEM if queue.usage > _TOO_MUCH else Level.WARNING
    yield Finding("wakeups", level, what, why, todo, FindingCode.NOTIFY_QUEUE_FULL)


def wakeups(engine: Engine) -> Findings:
    """Whether what one connection notifies is heard by another."""
    try:
        heard = engine.check_listen()
    except StoreError as error:
        yield problem(
            "wakeups",
            FindingCode.LISTEN_FAILED,
            f"LISTEN could not be tried: {error}",
            f"workers that hear nothing poll, every {_POLL}",
            "let the server take more connections",
        )
        return
    if heard.lag is not None:
        later = heard.lag / timedelta(milliseconds=1)
        yield fine("wakeups", f"what one connection notifies, another hears {later:,.0f} ms later")
    elif heard.behind_pooler and engine.notifier is not None:
        yield fine(
            "wakeups",
            "a pooler stands before the server, so LISTEN is not used; Redis wakes workers",
        )
    elif heard.behind_pooler:
        yield warning(
            "wakeups",
            FindingCode.POOLER,
            "a pooler stands before the server, so LISTEN is not used",
            f"workers poll, every {_POLL} at the most; everything else works",
            "set TENURE_REDIS_URL, or give workers the server's own address",
        )
    else:
        yield problem(
            "wakeups",
            FindingCode.NOT_HEARD,
            "what one connection notifies, another does not hear",
            f"workers poll, every {_POLL} at the most",
            "give workers the address of the server itself, or set TENURE_REDIS_URL",
        )


def redis(engine: Engine) -> Findings:
    """Whether the Redis that is configured carries what is rung."""
    if engine.notifier is None:
        return
    try:
        engine.notifier.check()
    except StoreError as error:
        yield problem(
            "redis",
            FindingCode.REDIS_AWAY,
            str(error),
            "it carries wakeups: workers hear PostgreSQL alone, or poll; no job is at risk",
            "start it, or mend TENURE_REDIS_URL",
        )
    else:
        yield fine("redis", "Redis takes what is published")
