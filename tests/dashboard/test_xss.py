"""Whatever a job, worker, schedule, queue or error is called: on a page it is text."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import quote, urlencode

import pytest

from support.browsing import seated
from support.serving import OPS
from tests.dashboard.holding import Holder
from tests.dashboard.xss import COUNT, VARIANTS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser

    from support.browsing import Seat
    from support.serving import Service

EACH = 4
JOBS = 30
# What a hostile text would call, or set off.
_TRAP = """
window.hit = () => console.error("a hostile text ran");
document.addEventListener("securitypolicyviolation", (event) =>
  console.error(`refused by the policy: ${event.violatedDirective} ${event.blockedURI}`));
"""
PLACES = (
    *("/", "/queues", "/jobs", "/jobs?filter=state:failed", "/schedules", "/workers", "/failed"),
    *("/operations", "/audit", "/system"),
)


@dataclass(frozen=True)
class Text:
    """Some variants at a time, and what of them a queue, a task or a schedule may be called."""

    words: str
    name: str


def texts() -> Iterator[Text]:
    """As many as there are jobs."""
    for start in range(0, JOBS * EACH, EACH):
        words = " ".join(VARIANTS[start : start + EACH])
        yield Text(words, f"q{start}" + re.sub(r"[^A-Za-z0-9_.:/<>@-]", "", words))


@pytest.fixture(scope="module")
def planted(service: Service) -> list[str]:
    """Jobs, workers, schedules and reasons with hostile texts in all their fields; the first job
    has all thousand of them. One by one they are on the first page of each list."""
    everything = "\n".join(VARIANTS)
    found: list[str] = []
    with service.caller() as caller:
        for number, one_of in enumerate(texts()):
            text, known = one_of.words, one_of.name
            words = everything if number == 0 else text
            every = VARIANTS if number == 0 else (text,)
            body = {
                "task": known,
                "queue": known,
                "key": text,
                "tags": [text],
                "args": {one: [one, {one: one}] for one in every},
            }
            holder = Holder(caller, known, text)
            found.append(holder.post("/v1/jobs", body)["id"])
            lease = holder.take()["lease"]
            output = {"cursor": {text: text}, "items": {one: one for one in every}, "log": words}
            holder.post("/v1/leases:progress", {"lease": lease, "message": text, **output})
            if number % 5 == 4:
                holder.post("/v1/leases:complete", {"lease": lease, "result": {text: words}})
            elif number % 5 != 3:
                error = {"type": text, "message": words, "trace": words}
                ending = {"lease": lease, "error": error, "retry": "never", "log": words}
                holder.post("/v1/leases:fail", ending)
        holder = Holder(caller, "", "")
        for one_of in list(texts())[:10]:
            text, known = one_of.words, one_of.name
            schedule = {"name": known, "task": known, "queue": known, "every": 3600}
            output = {"tags": [text], "args": {text: text}, "reason": text}
            holder.post("/v1/schedules", schedule | output)
            holder.post(f"/v1/queues/{quote(known, safe='')}:pause", {"reason": text})
            request = {"kind": "cancel", "filter": {"queue": known}, "reason": text}
            holder.post("/v1/operations", request)
    service.admin.tokens.create(next(texts()).words, OPS, scopes=["read"])
    return found


def test_there_are_a_thousand() -> None:
    assert len(set(VARIANTS)) == COUNT


def test_no_hostile_text_runs(browser: Browser, service: Service, planted: list[str]) -> None:
    """Every page there is, with them in every field; and with them in the address."""
    with seated(browser, service) as seat:
        seat.context.add_init_script(_TRAP)
        seat.page.on("dialog", lambda dialog: seat.wrong.append(f"a dialog: {dialog.message}"))
        paths = list(PLACES)
        tabs = ("arguments", "result", "items", "errors", "log", "events", "raw")
        paths += [
            f"/jobs/{one}?tab={tab}" for one in (planted[0], planted[3], planted[4]) for tab in tabs
        ]
        paths += [f"/operations/{number}" for number in (1, 2)]
        for one_of in list(texts())[:10:3]:
            text = one_of.words
            known = {"queue": one_of.name, "task": one_of.name}
            request = urlencode({"kind": "retry", "state": "failed", "signature": text, **known})
            named = quote(one_of.name, safe="")
            paths += [
                f"/operations/new?{request}",
                f"/failed?{urlencode(known)}",
                f"/failed?{urlencode({'queue': text, 'task': text})}",
                f"/queues/{named}",
                f"/schedules/{named}",
                f"/jobs?{urlencode({'filter': text})}",
                f"/jobs/{named}",
                f"/jobs?{urlencode({'said': text, 'filter': 'queue:none'})}",
                f"/sign-in?{urlencode({'to': '/' + text})}",
            ]
        for path in paths:
            answer = seat.go(path)
            assert answer is not None
            assert answer.status < 500, path
            _touch(seat)
            assert seat.wrong == [], path


def _touch(seat: Seat) -> None:
    """Nothing hostile became an element, and no element has a handler or leads to a script."""
    found: list[str] = seat.page.evaluate(
        """() => [...document.querySelectorAll("*")].filter((one) =>
            [...one.attributes].some((attribute) => attribute.name.startsWith("on")
                || attribute.name.includes("hx-") && !attribute.name.startsWith("hx-morph-skip")
                || /^(href|src|action|formaction|data|srcdoc)$/.test(attribute.name)
                    && /^\\s*(javascript|data|\\/\\/)/i.test(attribute.value))
            || ["IFRAME", "OBJECT", "EMBED", "BASE", "MATH"].includes(one.tagName)
        ).map((one) => one.outerHTML.slice(0, 200))"""
    )
    assert found == []
