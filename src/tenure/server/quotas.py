"""Enforce the quotas of access tokens and queues for jobs that are enqueued over HTTP.

Rates are counted in this process. Live jobs and payload bytes are estimates from the database,
refreshed every few seconds. Between refreshes, this server adds the jobs that it enqueues itself,
so only jobs from other servers and programs are counted late.
"""

import asyncio
import json
import math
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from time import monotonic
from typing import Any

from tenure.admin import Admin
from tenure.errors import QuotaExceeded
from tenure.server.auth import Caller
from tenure.server.cache import SingleFlightCache
from tenure.server.problems import ProblemError
from tenure.server.schemas.jobs import JobIn

# For tokens without a quota of their own.
DEFAULT_KEY_FOR = 90 * 86_400
DEFAULT_SESSIONS = 100
DEFAULT_QUEUE_NAMES = 1000
# How many seconds an estimate lasts. An expensive one lasts longer, up to _OLDEST.
_FRESH, _OLDEST, _COST_FACTOR = 2.0, 60.0, 50.0
_MOST_COUNTED = 1_000_000
# How long a queue's name counts for its token.
_NAMES_FOR = 600.0
# Subjects that are remembered: beyond, the least recently used is forgotten.
_MOST = 10_000
Subject = tuple[str, int | str]


def narrower(one: Mapping[str, float], other: Mapping[str, float]) -> dict[str, float]:
    """Return the lower of the two quotas for each name. A missing quota means no limit."""
    names = [*one, *(name for name in other if name not in one)]
    return {name: min(one.get(name, math.inf), other.get(name, math.inf)) for name in names}


@dataclass(slots=True)
class RateLimit:
    """A token bucket with room for one second's worth of jobs, but always for at least one job.

    A larger batch passes if the bucket has at least one token left. The next request then waits
    until the batch has been paid off.
    """

    rate: float
    at: float
    credit: float = math.inf

    def wait(self, now: float) -> float:
        """Return how many seconds to wait before the next request, or 0 if it can pass now."""
        self.credit = min(self.credit + (now - self.at) * self.rate, max(self.rate, 1.0))
        self.at = now
        if not self.rate:
            return math.inf
        return max((1.0 - self.credit) / self.rate, 0.0)

    def spend(self, count: int) -> None:
        self.credit -= count


@dataclass(slots=True)
class _Usage:
    """An estimate for one token or queue, plus what this server has added since it was made."""

    jobs: int = 0
    payload_bytes: int = 0
    until: float = 0.0
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


@dataclass(frozen=True, slots=True)
class _Limited:
    """One token or queue with quotas, and what a request would add to it."""

    subject: Subject
    name: str
    quotas: Mapping[str, float]
    queues: Sequence[str]
    jobs: int
    payload_bytes: int


class QuotaKeeper:
    """The quotas of one server process."""

    def __init__(self, admin: Admin) -> None:
        self._admin = admin
        self._queues = SingleFlightCache(self._of_queues, fresh=_FRESH)
        self._rates: OrderedDict[Subject, RateLimit] = OrderedDict()
        self._usages: OrderedDict[Subject, _Usage] = OrderedDict()
        self._names: OrderedDict[int, dict[str, float]] = OrderedDict()

    async def _of_queues(self) -> Mapping[str, Mapping[str, float]]:
        return {row.name: row.quotas for row in await self._admin.queues.alist() if row.quotas}

    def forget_queues(self) -> None:
        """Read the queues' quotas again before the next use."""
        self._queues = SingleFlightCache(self._of_queues, fresh=_FRESH)

    def max_sessions(self, caller: Caller) -> float:
        """Return how many worker sessions a token may have at this server."""
        return caller.quotas.get("sessions", DEFAULT_SESSIONS)

    def check_names(self, caller: Caller, queues: Sequence[str]) -> None:
        """Count a token's distinct queue names. Raise QuotaExceeded if they exceed its quota."""
        most = caller.quotas.get("queue_names", DEFAULT_QUEUE_NAMES)
        names, now = self._names.setdefault(caller.id, {}), monotonic()
        self._names.move_to_end(caller.id)
        _trim(self._names)
        new = {queue for queue in queues if queue not in names}
        if len(names) + len(new) > most:
            for name in [name for name, at in names.items() if at < now - _NAMES_FOR]:
                del names[name]
            if len(names) + len(new) > most:
                raise QuotaExceeded(
                    f"this access token may use {most:,.0f} queue names within 10 minutes; use "
                    "fewer, or raise its quota queue_names",
                    _NAMES_FOR,
                )
        names.update(dict.fromkeys(queues, now))

    def check_keys(self, caller: Caller, jobs: Sequence[JobIn]) -> None:
        """Refuse keys that are kept too long."""
        most = caller.quotas.get("key_for", DEFAULT_KEY_FOR)
        for job in jobs:
            if job.key_for is not None and job.key_for > most:
                raise ProblemError(
                    "invalid",
                    f"key_for must be at most {most:,.0f} s for this access token; use a shorter "
                    "time, or raise its quota key_for",
                )

    async def check_enqueue(self, caller: Caller, jobs: Sequence[JobIn]) -> None:
        """Count the jobs to enqueue. Raise QuotaExceeded if they exceed a quota."""
        self.check_names(caller, [job.queue for job in jobs])
        self.check_keys(caller, jobs)
        sizes = [(job.queue, job.args) for job in jobs]
        await self.check_jobs(caller, sizes)

    async def check_jobs(self, caller: Caller, jobs: Sequence[tuple[str, object]]) -> None:
        """Count jobs, given by queue and arguments, toward the quotas of the token and queues."""
        limits = self._limits(caller, jobs, await self._queues.get())
        now = monotonic()
        for one in limits:
            if (rate := self._rate(one, now)) is not None and (wait := rate.wait(now)):
                raise QuotaExceeded(
                    f"{one.name} may enqueue {rate.rate:,g} jobs a second; wait and try again", wait
                )
        usages = [(one, await self._usage(one)) for one in limits]
        for one, usage in usages:
            self._check_usage(one, usage)
        for one, usage in usages:
            if (rate := self._rate(one, now)) is not None:
                rate.spend(one.jobs)
            if usage is not None:
                usage.jobs += one.jobs
                usage.payload_bytes += one.payload_bytes

    async def check_payload(self, caller: Caller, queue: str, args: object) -> None:
        """Count new arguments of a stored job. No rate applies, because the job is not new."""
        for one in self._limits(caller, [(queue, args)], await self._queues.get()):
            if "payload_bytes" not in one.quotas:
                continue
            usage = await self._usage(one)
            # A queue at its limit of live jobs still accepts other arguments for them.
            only = {"payload_bytes": one.quotas["payload_bytes"]}
            self._check_usage(replace(one, quotas=only, jobs=0), usage)
            if usage is not None:
                usage.payload_bytes += one.payload_bytes

    def _limits(
        self,
        caller: Caller,
        jobs: Sequence[tuple[str, object]],
        quotas: Mapping[str, Mapping[str, float]],
    ) -> list[_Limited]:
        """Return the token and these jobs' queues, but only those that have quotas."""
        limits: list[_Limited] = []
        named = dict.fromkeys(queue for queue, _ in jobs if queue in quotas)
        if not named and not caller.quotas:
            return limits
        sizes = [(queue, len(json.dumps(args))) for queue, args in jobs]
        if caller.quotas:
            size = sum(size for _, size in sizes)
            subject, queues = ("token", caller.id), caller.grant.queues
            limits.append(
                _Limited(subject, "this access token", caller.quotas, queues, len(jobs), size)
            )
        for queue in named:
            own = [size for name, size in sizes if name == queue]
            limits.append(
                _Limited(("queue", queue), "this queue", quotas[queue], [queue], len(own), sum(own))
            )
        return limits

    def _rate(self, one: _Limited, now: float) -> RateLimit | None:
        most = one.quotas.get("enqueue_rate")
        if most is None:
            return None
        rate = self._rates.setdefault(one.subject, RateLimit(most, now))
        rate.rate = most
        self._rates.move_to_end(one.subject)
        _trim(self._rates)
        return rate

    async def _usage(self, one: _Limited) -> _Usage | None:
        if not one.quotas.keys() & {"live_jobs", "payload_bytes"}:
            return None
        usage = self._usages.setdefault(one.subject, _Usage())
        self._usages.move_to_end(one.subject)
        _trim(self._usages)
        async with usage.lock:
            if (began := monotonic()) >= usage.until:
                most = int(one.quotas.get("live_jobs", _MOST_COUNTED)) + 1
                found = await self._admin.queues.ausage(one.queues, most=most)
                usage.jobs, usage.payload_bytes = found.jobs, found.payload_bytes
                took = monotonic() - began
                usage.until = began + took + min(max(_FRESH, took * _COST_FACTOR), _OLDEST)
        return usage

    def _check_usage(self, one: _Limited, usage: _Usage | None) -> None:
        if usage is None:
            return
        wait = max(usage.until - monotonic(), 1.0)
        jobs, size = one.quotas.get("live_jobs"), one.quotas.get("payload_bytes")
        if jobs is not None and usage.jobs + one.jobs > jobs:
            raise QuotaExceeded(
                f"{one.name} may have {jobs:,.0f} live jobs, and has about {usage.jobs:,}; wait "
                "until some have ended, or raise the quota live_jobs",
                wait,
            )
        if size is not None and usage.payload_bytes + one.payload_bytes > size:
            raise QuotaExceeded(
                f"{one.name} may have {size:,.0f} bytes of arguments in live jobs, and has about "
                f"{usage.payload_bytes:,}; wait until some have ended, or raise the quota "
                "payload_bytes",
                wait,
            )


def _trim(known: OrderedDict[Any, Any]) -> None:
    while len(known) > _MOST:
        known.popitem(last=False)
