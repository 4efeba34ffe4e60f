"""Tokens that a token created: they end with it, and its owner sees and revokes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import httpx

from support.processes import wait_for
from support.serving import OPS

if TYPE_CHECKING:
    from typing import Any

    from tests.server.conftest import Service


def bearer(service: Service, secret: str) -> httpx.Client:
    return httpx.Client(
        base_url=service.url, headers={"Authorization": f"Bearer {secret}"}, timeout=30
    )


def child(parent: httpx.Client, **fields: Any) -> dict[str, Any]:
    answer = parent.post("/v1/tokens", json={"name": "child", "scopes": ["admin"]} | fields)
    assert answer.status_code == 201, answer.text
    made: dict[str, Any] = answer.json()
    return made


def test_a_child_expires_with_its_parent_at_the_latest(service: Service) -> None:
    """Before, a token with three seconds to live made one without end."""
    short = service.admin.tokens.create("short", OPS, scopes=["admin"], expires_in=600)
    assert short.token.expires_at is not None
    with bearer(service, short.secret) as parent:
        end = short.token.expires_at.isoformat().replace("+00:00", "Z")
        for lifetime in ({"expires_in": None}, {}, {"expires_in": 86_400}):
            assert child(parent, **lifetime)["token"]["expires_at"] == end
        sooner = child(parent, expires_in=60)["token"]
        assert sooner["expires_at"] < end
        assert sooner["created_by_token"] == str(short.token.id)


def test_a_revoked_parent_takes_its_descendants_with_it(service: Service) -> None:
    made = service.admin.tokens.create("parent", OPS, scopes=["admin"])
    with bearer(service, made.secret) as parent:
        first = child(parent)
        with bearer(service, first["secret"]) as one:
            grandchild = child(one)
    service.admin.tokens.revoke([made.token.id], OPS)
    with bearer(service, grandchild["secret"]) as last:
        assert wait_for(lambda: last.get("/v1/overview").status_code == 401, 5)
    targets = {row.target for row in service.admin.audit.search(action="token.revoke").rows}
    assert {f"token:{made.token.id}", f"token:{grandchild['token']['id']}"} <= targets


def test_children_can_be_kept(service: Service) -> None:
    made = service.admin.tokens.create("parent", OPS, scopes=["admin"])
    with bearer(service, made.secret) as parent, service.caller() as admin:
        kept = child(parent)
        answer = admin.post(f"/v1/tokens/{made.token.id}:revoke", json={"keep_children": True})
        assert answer.status_code == 200
    with bearer(service, kept["secret"]) as child_caller:
        assert child_caller.get("/v1/overview").status_code == 200


def test_a_queue_admin_sees_and_revokes_what_it_made(service: Service) -> None:
    other = service.admin.tokens.create("other", OPS, scopes=["read"]).token
    with service.caller("admin", queues=("mail",)) as caller:
        made = child(caller, scopes=["read"], queues=["mail"])["token"]
        listed = caller.get("/v1/tokens").json()["tokens"]
        assert [row["id"] for row in listed] == [made["id"]]
        assert caller.post(f"/v1/tokens/{other.id}:revoke").status_code == 404
        assert caller.post(f"/v1/tokens/{made['id']}:revoke").status_code == 200
        assert caller.get("/v1/tokens").json()["tokens"][0]["state"] == "revoked"


def test_a_role_is_a_bundle_of_scopes_that_no_token_exceeds(service: Service) -> None:
    with service.caller() as admin:
        made = child(admin, scopes=[], role="operator")["token"]
        assert made["scopes"] == ["read", "payload:read", "operate"]
        nothing = admin.post("/v1/tokens", json={"name": "none"})
        assert nothing.status_code == 422
    with service.caller("admin", queues=("mail",)) as queue_admin:
        wider = queue_admin.post("/v1/tokens", json={"name": "wide", "role": "viewer"})
        assert wider.status_code == 403
