"""A name cannot pass for another: signs that turn text around are shown as escapes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import httpx
import pytest

from support.serving import OPS
from tenure.server.dashboard import filters
from tests.dashboard.holding import Holder

if TYPE_CHECKING:
    from support.browsing import Seat
    from support.serving import Service

# Shown as "admin" by a browser that obeys it.
TURNED = "\u202enimda\u202c"
# What is read on a page: its text, and the attributes that are read out or pop up.
READ = """() => document.documentElement.textContent + [...document.querySelectorAll("*")].map(
    (one) => ["title", "aria-label", "placeholder"].map((name) => one.getAttribute(name)).join()
).join()"""


@pytest.mark.parametrize(
    ("page", "shown"),
    [
        ("<b>ana\u202egro\u202c</b>", r"<b>ana\u202egro\u202c</b>"),
        ("<b title='x' title=\"a\u2066b\">", r"""<b title='x' title="a\u2066b">"""),
        ('<input value="a\u202eb">', '<input value="a\u202eb">'),
        ("a\u200bb\ufeffc\x1b[31m", r"a\u200bb\ufeffc\u001b[31m"),
        ("שלום, مرحبا, 👩‍👧, tab\tline\n", "שלום, مرحبا, 👩‍👧, tab\tline\n"),
    ],
)  # fmt: skip
def test_signs_that_are_not_seen_are_written_as_escapes_where_they_are_read(
    page: str, shown: str
) -> None:
    assert filters.show_unseen(page) == shown


def test_no_page_turns_the_name_of_a_tag_a_key_a_worker_a_reason_or_a_token(
    seat: Seat, service: Service
) -> None:
    with service.caller() as caller:
        holder = Holder(caller, "turned", TURNED)
        body = {"task": "mail.send", "queue": "turned", "key": TURNED, "tags": [TURNED]}
        job = holder.post("/v1/jobs", {**body, "args": {TURNED: TURNED}})["id"]
        holder.fail(holder.take(), message=TURNED)
        holder.post("/v1/queues/turned:pause", {"reason": TURNED})
        mine = service.admin.tokens.create(TURNED, OPS, scopes=["operate"])
        holder.post("/v1/operations", {"kind": "retry", "filter": {"queue": "turned"}})
        caller.headers["Authorization"] = f"Bearer {mine.secret}"
        holder.post("/v1/queues/turned:resume", {"reason": TURNED})
    places = ("/", "/queues/turned", "/jobs", f"/jobs/{job}", f"/jobs/{job}?tab=raw", "/workers")
    shown = 0
    for path in (*places, f"/jobs/{job}?tab=errors", "/failed", "/operations", "/audit", "/system"):
        seat.go(path)
        text = seat.page.evaluate(READ)
        assert TURNED[0] not in text, path
        shown += r"\u202enimda\u202c" in text
    assert shown >= 6


def test_audit_page_shows_which_of_two_tokens_of_one_name_it_was(
    seat: Seat, service: Service
) -> None:
    twins = [service.admin.tokens.create("twin", OPS, scopes=["operate"]) for _ in range(2)]
    with service.caller() as caller:
        for twin in twins:
            caller.headers["Authorization"] = f"Bearer {twin.secret}"
            caller.post("/v1/queues/twins:pause", json={"reason": "look"}).raise_for_status()
    seat.go("/audit")
    for twin in twins:
        assert f"twin (token {twin.token.id})" in seat.page.content()


def test_page_to_sign_in_offers_the_browser_no_token_to_keep_and_no_device(
    service: Service,
) -> None:
    answer = httpx.get(f"{service.url}/sign-in")
    assert 'name="token" type="password" autocomplete="off"' in answer.text
    assert "camera=()" in answer.headers["Permissions-Policy"]
