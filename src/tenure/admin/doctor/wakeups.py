"""How workers learn that there is something to do: by LISTEN, through a pooler not, by Redis."""

from datetime import timedelta

from tenure._model.condition import NotifyQueue
from tenure._model.finding import Fault, Finding, Level
from tenure._store.engine import Engine
from tenure.admin.doctor.findings import Found, fine, in_sql, problem, warning
from tenure.config import DEFAULTS
from tenure.errors import StoreError

# From here on enqueues send no wakeups.
_MUCH = 0.5
_TOO_MUCH = 0.9
_POLL = f"{DEFAULTS.poll.total_seconds():g} s"


def notify_queue(queue: NotifyQueue) -> Found:
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
    yield Finding("wakeups", level, what, why, todo, Fault.NOTIFY_QUEUE_FULL)


def wakeups(engine: Engine) -> Found:
    """Whether what one connection notifies is heard by another."""
    try:
        heard = engine.hears()
    except StoreError as error:
        yield problem(
            "wakeups",
            Fault.LISTEN_FAILED,
            f"LISTEN could not be tried: {error}",
            f"workers that hear nothing poll, every {_POLL}",
            "let the server take more connections",
        )
        return
    if heard.lag is not None:
        later = heard.lag / timedelta(milliseconds=1)
        yield fine("wakeups", f"what one connection notifies, another hears {later:,.0f} ms later")
    elif heard.pooled and engine.bell is not None:
        yield fine(
            "wakeups",
            "a pooler stands before the server, so LISTEN is not used; Redis wakes workers",
        )
    elif heard.pooled:
        yield warning(
            "wakeups",
            Fault.POOLER,
            "a pooler stands before the server, so LISTEN is not used",
            f"workers poll, every {_POLL} at the most; everything else works",
            "set TENURE_REDIS_URL, or give workers the server's own address",
        )
    else:
        yield problem(
            "wakeups",
            Fault.NOT_HEARD,
            "what one connection notifies, another does not hear",
            f"workers poll, every {_POLL} at the most",
            "give workers the address of the server itself, or set TENURE_REDIS_URL",
        )


def redis(engine: Engine) -> Found:
    """Whether the Redis that is configured carries what is rung."""
    if engine.bell is None:
        return
    try:
        engine.bell.check()
    except StoreError as error:
        yield problem(
            "redis",
            Fault.REDIS_AWAY,
            str(error),
            "it carries wakeups: workers hear PostgreSQL alone, or poll; no job is at risk",
            "start it, or mend TENURE_REDIS_URL",
        )
    else:
        yield fine("redis", "Redis takes what is published")
