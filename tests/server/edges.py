"""The one list of edges: every place where a job's data leaves Tenure.

Routes and commands are not listed twice: the tests read the server's route table and the command
line's commands, and fail for one that is not here. To add an edge, say here how the canaries reach
it (`FILLED`, `QUERIES`, `COMMANDS`), or that it answers without job data (`SILENT`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from support.commands import commands
from tenure import Tenure
from tenure.cli.commands import app as command_line
from tenure.server import create

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

# What stands for each name in a path. The job is the one that has every shape.
FILLED = ("job_id", "operation_id")
NAMED: Mapping[str, str] = {
    "/v1/schedules/": "canaries",
    "/schedules/": "canaries",
    "/queues/": "canaries",
    "/static/": "tenure.css",
}
# More than one question to the same route; every list is also asked page by page.
QUERIES: Mapping[str, tuple[Mapping[str, str], ...]] = {
    "/v1/jobs": (
        *({"state": state, "page_size": "200"} for state in ("queued", "failed", "completed")),
        *({"filter": text, "page_size": "200"} for text in ("", "state:failed", "queue:canaries")),
    ),
    "/v1/jobs/{job_id}/items": ({"page_size": "200"},),
    "/v1/failed/groups": ({"page_size": "200"}, {"queue": "canaries", "page_size": "200"}),
    # The planted job was edited: its old and new arguments are in the audit.
    "/v1/audit": ({"page_size": "200"}, {"target": "schedule:canaries"}, {"action": "edit"}),
    "/v1/schedules": ({"ticks": "5"},),
    "/jobs": ({}, {"filter": "state:failed"}, {"filter": "state:completed"}),
    "/jobs.ndjson": ({}, {"filter": "queue:canaries"}),
    "/failed": ({}, {"queue": "canaries"}),
    "/jobs/{job_id}": tuple(
        {"tab": tab, "every": "true"}
        for tab in ("arguments", "result", "items", "errors", "log", "events", "raw")
    ),
    "/operations/new": ({"kind": "retry", "state": "failed", "queue": "canaries"},),
}
# A stream that has no end: its events carry names of queues and no job data.
ENDLESS = ("/events",)
# Routes that change something. They answer with ids, states and the caller's own words.
SILENT: Mapping[str, Iterable[str]] = {
    "/v1/jobs": ("POST",),
    "/v1/jobs:batch": ("POST",),
    "/v1/jobs/{job_id}": ("PATCH", "DELETE"),
    **{
        f"/v1/jobs/{{job_id}}:{name}": ("POST",)
        for name in ("retry", "cancel", "revoke", "hold", "resume", "move", "rerun")
    },
    # The holder of a lease gets the arguments as they are: it runs the job.
    **{
        f"/v1/leases:{name}": ("POST",)
        for name in ("acquire", "renew", "progress", "complete", "fail", "release", "settle")
    },
    # Answers with the schedule, by the same function as the route that shows it.
    "/v1/schedules": ("POST",),
    "/v1/schedules:preview": ("POST",),
    "/v1/schedules/{name:path}": ("PATCH", "DELETE"),
    **{
        f"{under}/schedules/{{name:path}}:{name}": ("POST",)
        for under in ("/v1", "")
        for name in ("pause", "resume", "run", "backfill")
    },
    **{
        f"{under}/queues/{{name:path}}:{name}": ("POST",)
        for under in ("/v1", "")
        for name in ("pause", "resume", "limit")
    },
    "/v1/queues/{name:path}:configure": ("POST",),
    "/v1/queues/{name:path}:quota": ("POST",),
    "/v1/keys:free": ("POST",),
    "/v1/workers/{worker_id}:drain": ("POST",),
    "/workers/{worker_id}:drain": ("POST",),
    "/v1/settings/{name}": ("PUT", "DELETE"),
    "/v1/operations": ("POST",),
    "/v1/operations:erase": ("POST",),
    **{
        f"/v1/operations/{{operation_id}}:{name}": ("POST",)
        for name in ("pause", "resume", "abort")
    },
    "/v1/tokens": ("POST",),
    "/v1/tokens/{token_id}:revoke": ("POST",),
    "/v1/tokens/{token_id}:quota": ("POST",),
    "/v1/notices": ("POST",),
    "/v1/notices/{name}:test": ("POST",),
    "/v1/notices/{name}:remove": ("POST",),
    "/v1/sessions/{session_id}:revoke": ("POST",),
    "/sessions/{session_id}:revoke": ("POST",),
    "/sign-in": ("POST",),
    "/sign-out": ("POST",),
    "/jobs/{job_id}/{action}": ("POST",),
    "/operations": ("POST",),
    "/operations/{operation_id}/{action}": ("POST",),
}
# Commands that show job data, with what they are given. `JOB` is the job with every shape.
COMMANDS: Mapping[str, tuple[str, ...]] = {
    "tenure job list": ("--count", "1000"),
    "tenure job show": ("JOB",),
    "tenure job why": ("JOB",),
    "tenure job watch": ("JOB",),
    "tenure failed groups": ("--count", "1000"),
    "tenure failed list": ("--count", "1000"),
    "tenure schedule list": (),
    "tenure schedule show": ("canaries",),
    "tenure operation list": (),
    "tenure audit": (),
    "tenure queue list": (),
    "tenure queue show": ("canaries",),
    "tenure worker list": (),
    "tenure setting list": (),
}
# Commands that print ids, states, numbers, figures or the caller's own words.
QUIET: tuple[str, ...] = (
    *("tenure", "tenure init", "tenure dev", "tenure demo", "tenure scheduler", "tenure server"),
    *("tenure probe", "tenure doctor", "tenure top", "tenure worker", "tenure worker show"),
    *("tenure worker drain", "tenure operation show"),
    *(f"tenure job {name}" for name in ("enqueue", "retry", "cancel", "revoke", "hold")),
    *(f"tenure job {name}" for name in ("resume", "move", "edit", "rerun", "delete")),
    *(f"tenure queue {name}" for name in ("pause", "resume", "limit", "configure", "quota")),
    *(f"tenure schedule {name}" for name in ("preview", "create", "update", "pause", "resume")),
    *(f"tenure schedule {name}" for name in ("delete", "run", "backfill")),
    *(f"tenure failed {name}" for name in ("retry", "discard")),
    *(f"tenure operation {name}" for name in ("pause", "resume", "abort")),
    *(f"tenure db {name}" for name in ("migrate", "status", "sql", "roles", "maintain")),
    *("tenure setting set", "tenure setting reset"),
    *(f"tenure token {name}" for name in ("create", "list", "revoke", "quota")),
    *(f"tenure session {name}" for name in ("list", "revoke", "link")),
    *(f"tenure notify {name}" for name in ("list", "add", "test", "remove")),
    *("tenure key free", "tenure erase"),
)


def routes() -> Iterator[tuple[str, str]]:
    """Yield method and path of every route that the server has, pages included."""

    def flat(some: Iterable[Any]) -> Iterator[Any]:
        for route in some:
            inner = getattr(route, "original_router", None)
            yield from [route] if inner is None else flat(inner.routes)

    for route in flat(create(Tenure("postgresql://unused/unused")).routes):
        for method in (route.methods or ()) if hasattr(route, "methods") else ():
            if method not in ("HEAD", "OPTIONS"):
                yield method, route.path


def every_command() -> list[str]:
    """Return every command of the command line."""
    return [path for path, _ in commands(typer.main.get_command(command_line))]
