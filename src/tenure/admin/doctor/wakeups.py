"""How workers learn that there is something to do: by LISTEN, through a pooler not, by Redis."""

from datetime import timedelta

from tenure._model.finding import Fault
from tenure._store.engine import Engine
from tenure.admin.doctor.findings import Found, fine, problem, warning
from tenure.config import DEFAULTS
from tenure.errors import StoreError

_POLL = f"{DEFAULTS.poll.total_seconds():g} s"


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
