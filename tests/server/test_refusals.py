"""A refused command reads the same on the command line, over HTTP and on a page."""

from __future__ import annotations

import json
from datetime import datetime
from html import unescape
from itertools import count
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

import psycopg
import pytest
from psycopg.types.json import Jsonb

from support.serving import OPS
from tenure import _actions
from tenure.cli.commands import run

if TYPE_CHECKING:
    from collections.abc import Callable

    from support.serving import Service

NO_ONE = 999_999
NUMBERS = count()


def queued(service: Service) -> int:
    return int(service.enqueue("refused"))


def ended(service: Service) -> int:
    job_id = queued(service)
    service.admin.jobs.cancel([job_id], OPS)
    return job_id


def dead(service: Service, **options: str) -> int:
    queue = f"dies-{next(NUMBERS)}"  # A retry by another test puts jobs into its queue.
    job_id = int(service.enqueue(queue, max_attempts=1, **options))
    with service.caller() as caller:
        wanted = {"queues": [queue], "worker": {"name": "here"}}
        [job] = caller.post("/v1/leases:acquire", json=wanted).json()["jobs"]
        error = {"type": "Oops", "message": "no"}
        caller.post("/v1/leases:fail", json={"lease": job["lease"], "error": error})
    return job_id


def dead_whose_key_is_held(service: Service) -> int:
    """A dead letter; its key belongs to a younger job."""
    job_id = dead(service, key="one")
    service.enqueue("keyed", key="one")
    return job_id


def held(service: Service) -> int:
    job_id = queued(service)
    service.admin.jobs.hold([job_id], OPS)
    return job_id


def running(service: Service) -> int:
    queue = f"runs-{next(NUMBERS)}"  # The lease of another test's job may end meanwhile.
    job_id = int(service.enqueue(queue))
    with service.caller() as caller:
        wanted = {"queues": [queue], "worker": {"name": "here"}}
        assert caller.post("/v1/leases:acquire", json=wanted).json()["jobs"]
    return job_id


SEALED_ARGS = {"$sealed": "AAAA"}


def sealed(make: Callable[[Service], int]) -> Callable[[Service], int]:
    """The same job, but a program with a codec sealed its arguments."""

    def made(service: Service) -> int:
        job_id = make(service)
        with psycopg.connect(service.database) as connection:
            for table in ("job", "job_failed", "job_archive"):
                connection.execute(
                    f"UPDATE tenure.{table} SET args = %s WHERE id = %s",
                    [Jsonb(SEALED_ARGS), job_id],
                )
        return job_id

    return made


def ended_whose_key_is_held(service: Service) -> int:
    job_id = int(service.enqueue("refused", key="its own"))
    service.admin.jobs.cancel([job_id], OPS)
    service.enqueue("keyed", key="its own")
    return job_id


# What is asked for, where an action takes more than a job. Over HTTP and on the command line.
ARGS = {"args": {"n": 1}}
AT = "2040-01-01T10:00"
REFUSED_FIELDS: dict[tuple[str, str], dict[str, Any]] = {
    ("retry", "sealed"): ARGS,
    ("rerun", "sealed"): ARGS,
    ("rerun", "key_held"): {"keep_key": True},
    ("edit", "sealed"): ARGS,
    ("edit", "not_queued"): {"run_at": f"{AT}Z"},
}


def fields_of(name: str, status: str) -> dict[str, Any]:
    other = {"priority": 1} if name in ("move", "edit") else {}
    return REFUSED_FIELDS.get((name, status), other)


def option(name: str, value: object) -> list[object]:
    """A field as the command line has it."""
    flag = f"--{name.replace('_', '-')}"
    return [flag] if value is True else [flag, json.dumps(value).strip('"')]


def in_a_form(name: str, value: object) -> str:
    if name == "run_at":
        return AT
    return json.dumps(value) if isinstance(value, dict) else str(value)


REFUSED: dict[tuple[str, str], Callable[[Service], int]] = {
    ("retry", "not_failed"): queued,
    ("retry", "key_held"): dead_whose_key_is_held,
    ("cancel", "not_live"): ended,
    ("revoke", "not_running"): queued,
    ("hold", "not_queued"): ended,
    ("resume", "not_held"): queued,
    ("move", "not_queued"): ended,
    ("retry", "sealed"): sealed(dead),
    ("edit", "running"): running,
    ("edit", "not_queued"): dead,
    ("edit", "ended"): ended,
    ("edit", "sealed"): sealed(queued),
    ("edit", "not_found"): lambda _service: NO_ONE,
    ("rerun", "key_held"): ended_whose_key_is_held,
    ("rerun", "live"): running,
    ("rerun", "sealed"): sealed(ended),
    ("rerun", "not_found"): lambda _service: NO_ONE,
    ("delete", "live"): queued,
    ("delete", "not_found"): lambda _service: NO_ONE,
}


def on_the_command_line(
    service: Service, capsys: pytest.CaptureFixture[str], *arguments: object
) -> tuple[str, str]:
    """Why the command was refused, and what to do."""
    capsys.readouterr()
    assert run([*map(str, arguments), "--database-url", service.database]) != 0
    _, why, todo = capsys.readouterr().err.splitlines()[-3:]
    return why.removeprefix("why:   "), todo.removeprefix("do:    ")


def over_http(service: Service, method: str, path: str, **body: object) -> str:
    """The detail of the problem."""
    with service.caller() as caller:
        answer = caller.request(method, path, json=body or None)
    assert answer.is_client_error, answer.text
    return str(answer.json()["detail"])


def on_a_page(service: Service, path: str, **fields: str) -> str:
    """What the page says: in a sentence after a redirect, or as a problem."""
    with service.browser() as browser:
        form = {"mark": service.mark(browser), **fields}
        answer = browser.post(path, data=form, headers={"Accept": "text/html"})
    if answer.is_redirect:
        [flash] = parse_qs(urlsplit(answer.headers["location"]).query)["flash"]
        return flash.removeprefix("Nothing changed: ").removesuffix(".")
    return unescape(answer.text)


def test_every_refusal_of_a_job_action_is_tried() -> None:
    """Dead letters are discarded by operations alone: there is no command for one of them."""
    described = {
        (action.name, status)
        for action in _actions.JOB_ACTIONS.values()
        for status in action.refusals
    }
    assert described - REFUSED.keys() == {("discard", "not_failed")}


@pytest.mark.parametrize(("name", "status"), REFUSED)
def test_a_refused_job_action_reads_the_same_everywhere(
    service: Service, capsys: pytest.CaptureFixture[str], name: str, status: str
) -> None:
    job_id = REFUSED[name, status](service)
    fields = fields_of(name, status)
    options = [part for item in fields.items() for part in option(*item)]
    typed = {k: datetime.fromisoformat(v) if k == "run_at" else v for k, v in fields.items()}
    [result] = getattr(service.admin.jobs, name)([job_id], OPS, dry_run=True, **typed)
    outcome = _actions.JOB_ACTIONS[name].outcome(job_id, result)
    assert (outcome.status, outcome.is_refusal) == (status, True)

    why, _ = on_the_command_line(service, capsys, "job", name, job_id, *options)
    method, path = "POST", f"/v1/jobs/{job_id}:{name}"
    if name in ("delete", "edit"):
        method, path = "DELETE" if name == "delete" else "PATCH", f"/v1/jobs/{job_id}"
    detail = over_http(service, method, path, **fields)
    form = {k: in_a_form(k, v) for k, v in fields.items()}
    page = on_a_page(service, f"/jobs/{job_id}/{name}", **form)

    assert why == detail == outcome.sentence
    assert outcome.sentence == page if status != "not_found" else outcome.sentence in page


@pytest.mark.parametrize("name", _actions.OPERATION_ACTIONS)
def test_a_refused_operation_action_reads_the_same_everywhere(
    service: Service, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    row = service.admin.operations.start("cancel", "queue:nowhere", OPS)
    assert row.state.is_ended  # No job matches.

    why, todo = on_the_command_line(service, capsys, "operation", name, row.id)
    detail = over_http(service, "POST", f"/v1/operations/{row.id}:{name}")
    page = on_a_page(service, f"/operations/{row.id}/{name}")

    assert f"{why}; {todo}" == detail
    assert detail in page


def test_a_worker_that_is_not_there_reads_the_same_over_http_and_on_a_page(
    service: Service,
) -> None:
    worker = "00000000-0000-4000-8000-000000000000"
    detail = over_http(service, "POST", f"/v1/workers/{worker}:drain")
    assert detail == _actions.DRAIN_WORKER.outcome(worker, result=False).sentence
    assert detail in on_a_page(service, f"/workers/{worker}:drain")


def test_a_token_that_is_not_there_reads_the_same_over_http_and_on_the_command_line(
    service: Service, capsys: pytest.CaptureFixture[str]
) -> None:
    why, _ = on_the_command_line(service, capsys, "token", "revoke", NO_ONE)
    assert why == over_http(service, "POST", f"/v1/tokens/{NO_ONE}:revoke")


def test_a_queue_that_is_paused_until_no_time_is_refused_everywhere(
    service: Service, capsys: pytest.CaptureFixture[str]
) -> None:
    """A queue may be paused twice, and before it exists: only its time can be wrong, and each
    surface reads the time by itself."""
    why, todo = on_the_command_line(service, capsys, "queue", "pause", "mail", "--until", "soon")
    assert "zone" in todo
    assert why
    assert "until" in over_http(service, "POST", "/v1/queues/mail:pause", until="soon")
    assert "minutes" in on_a_page(service, "/queues/mail:pause", minutes="soon")


@pytest.mark.parametrize("action", [_actions.PAUSE_QUEUE, _actions.RESUME_QUEUE])
def test_a_queue_action_that_is_done_reads_the_same_on_the_command_line_and_on_a_page(
    service: Service, capsys: pytest.CaptureFixture[str], action: _actions.Action
) -> None:
    capsys.readouterr()
    assert run(["queue", action.name, "read", "--database-url", service.database]) == 0
    output = capsys.readouterr().err.splitlines()[0].partition(";")[0]
    assert output == action.outcome("read").sentence
    page = on_a_page(service, f"/queues/read:{action.name}")
    assert page == f"{output[0].upper()}{output[1:]}"


# Which job each action is for, where that is not a queued one.
BEFORE: dict[str, Callable[[Service], int]] = {
    "retry": dead,
    "revoke": running,
    "resume": held,
    "discard": dead,
    "rerun": ended,
    "delete": ended,
}


@pytest.mark.parametrize("name", _actions.JOB_ACTIONS)
def test_the_audit_has_a_job_action_by_its_name(service: Service, name: str) -> None:
    action = _actions.JOB_ACTIONS[name]
    job_id = BEFORE.get(name, queued)(service)
    changes = {"priority": 1} if name in ("move", "edit") else {}
    [result] = getattr(service.admin.jobs, name)([job_id], OPS, **changes)
    assert not action.outcome(job_id, result).is_refusal
    [row] = service.admin.audit.list(f"job:{job_id}", count=1)
    assert row.action == action.audit
