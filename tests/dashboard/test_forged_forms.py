"""Every form of every page: taken from our own pages alone, and a spelling of an API route."""

from __future__ import annotations

import pkgutil
import re
from importlib import import_module
from typing import TYPE_CHECKING

import pytest

from tenure import Tenure
from tenure.server import create
from tenure.server.dashboard import session, views

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.serving import Service

# What each form does, as the API says it; `{action}` stands for each of several.
TWINS = {
    "/jobs/{job_id}/{action}": [
        *(f"/v1/jobs/{{job_id}}:{action}" for action in ("retry", "cancel", "revoke", "hold")),
        *("/v1/jobs/{job_id}:resume", "/v1/jobs/{job_id}:move", "/v1/jobs/{job_id}"),
        "/v1/jobs/{job_id}:rerun",
    ],
    "/operations": ["/v1/operations"],
    "/operations/{operation_id}/{action}": [
        f"/v1/operations/{{operation_id}}:{action}" for action in ("pause", "resume", "abort")
    ],
    "/queues/{name:path}:limit": ["/v1/queues/{name}:limit"],
    "/queues/{name:path}:pause": ["/v1/queues/{name}:pause"],
    "/queues/{name:path}:resume": ["/v1/queues/{name}:resume"],
    "/schedules/{name:path}:backfill": ["/v1/schedules/{name}:backfill"],
    "/schedules/{name:path}:pause": ["/v1/schedules/{name}:pause"],
    "/schedules/{name:path}:resume": ["/v1/schedules/{name}:resume"],
    "/schedules/{name:path}:run": ["/v1/schedules/{name}:run"],
    "/sessions/{session_id}:revoke": ["/v1/sessions/{session_id}:revoke"],
    "/workers/{worker_id}:drain": ["/v1/workers/{worker_id}:drain"],
}
FOREIGN = (
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},
    {"Origin": "https://evil.example"},
    {"Origin": "null"},
)


def forms() -> Iterator[str]:
    """The path of every form of a page, but to sign in and out."""
    for room in pkgutil.iter_modules(views.__path__):
        module = import_module(f"{views.__name__}.{room.name}")
        for route in module.router.routes:
            if "POST" in route.methods:
                yield route.path


def test_every_form_has_its_twin_in_the_api() -> None:
    """And the table has no other."""
    assert sorted(set(forms()) - {"/sign-in", "/sign-out"}) == sorted(TWINS)
    api = create(Tenure("postgresql://nobody@127.0.0.1:1/none"))
    known = api.openapi()["paths"]
    assert {twin for twins in TWINS.values() for twin in twins} <= set(known)


def _filled(path: str) -> str:
    return re.sub(r"\{[^}]*\}", "1", path)


@pytest.mark.parametrize("path", [*TWINS, "/sign-in", "/sign-out"])
def test_what_is_sent_from_elsewhere_is_refused(service: Service, path: str) -> None:
    """Even with the mark, and without anything that the browser says of its origin, no form is
    taken that lacks the mark. Nothing is in the audit."""
    with service.browser() as browser:
        mark = service.mark(browser)
        for headers in FOREIGN:
            answer = browser.post(_filled(path), data={"mark": mark}, headers=headers)
            assert answer.status_code == 403, headers
        if path != "/sign-in":
            for wrong in ("", "0" * 64, session.csrf_token("tnr_another")):
                assert browser.post(_filled(path), data={"mark": wrong}).status_code == 403
            assert browser.post(_filled(path), json={"mark": mark}).status_code == 403
    pages = service.admin.audit.search(source="page").rows
    assert {row.action for row in pages} == {"session.sign_in"}
