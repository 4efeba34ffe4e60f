"""Forged lease strings against a real server; `just prove forged` tries them all."""

from __future__ import annotations

import itertools
from datetime import timedelta
from random import Random
from typing import TYPE_CHECKING

import pytest

from proof.via_http.forging import VERBS, attempt, forgeries
from support.serving import OPS
from tenure._model.ids import JobId, Token
from tenure._model.lease import Lease
from tenure.errors import InvalidValue
from tenure.gateway import RemoteSession
from tenure.gateway.lease_strings import read_lease

if TYPE_CHECKING:
    from tests.server.conftest import Service

EACH = 25


def test_no_forged_lease_is_accepted(service: Service) -> None:
    """Shows R5. Some of each kind, each on one verb in turn."""
    made = service.admin.tokens.create("forger", OPS, scopes=["work"])
    holder = f"token:{made.token.id}"
    for _ in range(2):
        service.enqueue("forged", lease=600)
    rng = Random(5)  # noqa: S311 - to be repeated
    verbs = itertools.cycle(VERBS)
    with service.caller() as caller:
        caller.headers["Authorization"] = f"Bearer {made.secret}"
        request = {"queues": ["forged"], "worker": {"name": "forger"}, "count": 2}
        jobs = caller.post("/v1/leases:acquire", json=request).json()["jobs"]
        true, other = (job["lease"] for job in jobs)
        kinds: dict[str, list[str]] = {}
        for kind, text in forgeries(true, other, holder, rng):
            kinds.setdefault(kind, []).append(text)
        for texts in kinds.values():
            for text in rng.sample(texts, min(EACH, len(texts))):
                assert attempt(caller, next(verbs), text) is None, text

        assert [attempt(caller, "complete", text) is None for text in (true, other)] == [False] * 2


def test_forged_lease_length_is_refused() -> None:
    """Its holder could make the seal."""
    me = RemoteSession.new("token:1")
    lease = Lease(JobId(1), Token(1), me.worker, timedelta(days=1))
    longer = lease._replace(ttl=timedelta(days=1, milliseconds=1))

    assert read_lease(me.lease(lease, attempt=3), "token:1") == (lease, 3)
    with pytest.raises(InvalidValue):
        read_lease(me.lease(longer, attempt=3), "token:1")
