"""What is there when routes are asked: jobs in every state, leases, schedules, tokens."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime, timedelta
from random import Random
from typing import TYPE_CHECKING, Any

from support.serving import OPS
from tenure.admin import Filter

if TYPE_CHECKING:
    import httpx
    from schemathesis import Case

    from support.serving import Service

    AnyCase = Case[Any]

_QUEUE = "fuzzed"
_ME = {"queues": [_QUEUE], "worker": {"name": "fuzz"}}


class Stage:
    """The things that ids and leases in requests are made to hit, about two times in three."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._caller: httpx.Client = service.caller()
        self._numbers = itertools.count()
        self._leases: list[str] = []
        self._ids: dict[str, list[str]] = {}
        # Revoking the token that sends the requests would end the run.
        self._own = {str(token.id) for token in service.admin.tokens.list()}
        self.set()

    def set(self) -> None:
        """Add rows next to those that exist; resume queues that were stopped."""
        admin = self._service.admin
        for queue in (_QUEUE, "*"):
            admin.queues.resume(queue, OPS)
            admin.queues.limit(queue, None, OPS)
        jobs = [self._service.enqueue(_QUEUE, args={"n": n}) for n in range(12)]
        acquired = self._acquire(6)
        for work, verb in zip(acquired, ("complete", "fail"), strict=False):
            body: dict[str, Any] = {"lease": work["lease"]}
            if verb == "fail":
                body |= {"error": {"type": "E", "message": "no"}, "retry": "never"}
            self._caller.post(f"/v1/leases:{verb}", json=body)
        self._leases = [work["lease"] for work in acquired][2:]
        jobs.append(self._service.enqueue(_QUEUE, delay=3600, key="k"))
        names = [f"fuzzed-{next(self._numbers)}" for _ in range(4)]
        for name in names:
            admin.schedules.create(name, "task", OPS, every=3600, queue=_QUEUE)
        until = datetime.now(UTC) - timedelta(hours=2)
        backfill = admin.schedules.backfill(names[0], until - timedelta(days=2), until, OPS, rate=1)
        retry = admin.operations.start("retry", Filter(queue=_QUEUE), OPS)
        tokens = [admin.tokens.create("t", OPS, scopes=["read"]).token.id for _ in range(3)]
        self._ids = {
            "job_id": jobs,
            "operation_id": [str(backfill.id), str(retry.id)],
            "token_id": [str(token) for token in tokens],
            "worker_id": [str(worker.id) for worker in admin.workers.list()],
        }
        self._names = {"schedules": names, "queues": [_QUEUE, "*"], "settings": ["lease", "redact"]}

    def fit(self, case: AnyCase, seed: int) -> None:
        """Let a request mean something that is there, now and then; and never wait."""
        pick = Random(seed)  # noqa: S311 - chooses, and guards nothing
        given = case.path_parameters or {}
        for name in given:
            there = self._ids.get(name) or self._names.get(case.path.split("/")[2].split(":")[0])
            if (there and pick.random() < 2 / 3) or given[name] in self._own:
                given[name] = pick.choice(there or ["999999"])
        body = case.body
        if isinstance(body, dict):
            self._fit_body(case, body, pick)

    def _fit_body(self, case: AnyCase, body: dict[str, Any], pick: Random) -> None:
        if case.path == "/v1/leases:acquire":
            body["wait"] = 0 if isinstance(body.get("wait"), int | float) else body.get("wait", 0)
            if pick.random() < 2 / 3:
                body["queues"] = [_QUEUE]
        if "lease" in body and "leases:" in case.path and pick.random() < 2 / 3:
            body["lease"] = self._lease(pick)
        if "leases" in body and pick.random() < 2 / 3:
            body["leases"] = [self._lease(pick)]
        if "queue" in body and "schedules" in case.path and pick.random() < 1 / 3:
            body["queue"] = _QUEUE

    def _lease(self, pick: Random) -> str:
        if len(self._leases) < 2:
            for _ in range(10):
                self._service.enqueue(_QUEUE)
            self._leases += [work["lease"] for work in self._acquire(10)]
        lease = pick.choice(self._leases or ["gone"])
        if pick.random() < 1 / 2 and lease in self._leases:
            self._leases.remove(lease)
        return lease

    def _acquire(self, count: int) -> list[dict[str, Any]]:
        answer = self._caller.post("/v1/leases:acquire", json=_ME | {"count": count})
        jobs: list[dict[str, Any]] = answer.json().get("jobs", [])
        return jobs
