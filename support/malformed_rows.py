"""A producer's malformed rows, next to a worker and a server that have only their roles.

`just prove malformed` inserts every row. `tests/roles` inserts one row of each kind, with a worker
and a server in its own process.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import httpx
import psycopg

from support.processes import wait_for
from support.roles import NOT_A_PRODUCERS
from support.serving import serving
from support.workers import Worker
from tenure import Tenure

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from support.roles import Parties

Columns = dict[str, Any]
QUEUE = "poisoned"
UNREADABLE = "unreadable"
_TARGET = "support.malformed_rows:app"
_FAR = ("infinity", "-infinity", "4000-01-01 BC", "20000-01-01")
_NOT_OBJECTS = ("null", "[]", '"x"', "5", "true")
_GOOD: Columns = {
    "queue": QUEUE,
    "task": "good",
    "args": "{}",
    "priority": 9,
    "run_at": "now",
    "created_at": "now",
    "max_attempts": 3,
    "max_losses": 3,
}
PATHS = (
    "/v1/jobs?count=500",
    "/v1/jobs?state=queued",
    "/v1/jobs?state=failed&count=500",
    "/v1/jobs?filter=queue:poisoned",
    "/v1/overview",
    "/v1/queues",
    "/v1/failed/groups",
    "/jobs",
    "/failed",
    "/queues",
)


async def good(n: int = 0) -> int:
    """Answer."""
    return n


def create_app(url: str | None = None) -> Tenure:
    """An app with the task of the good jobs."""
    made = Tenure(url)
    made.task(name="good", queue=QUEUE)(good)
    return made


# For the worker's process.
app = create_app()


def kinds() -> Mapping[str, list[Columns]]:
    """The rows by their kind, as the columns that differ from those of a good job."""
    return {
        "columns that are not a producer's": list(_foreign()),
        "times": [{name: at} for name in ("run_at", "created_at") for at in (*_FAR, None)],
        "leases": _each(
            "lease", "-1 day", "0", "1 us", "2 days", "1 mon", "1 mon -29 days", "290000 years"
        ),
        "lengths of a key": [
            {"key_for": length, "key": "k"}
            for length in ("-1 s", "1 mon", "100000 years", "2000000 days -47999999 hours")
        ],
        "counts": [
            *_each("max_attempts", 0, -5, 32768, None),
            *_each("max_losses", -1, 32768, None),
            *_each("target", 0, -1, 2**31),
            *_each("priority", -1, 10, None),
        ],
        "names": [
            *_each("queue", "", "q" * 201, None),
            *_each("task", "", "t" * 201, "t" * 9000, None),
            *_each("key", "", "k" * 401),
        ],
        "values that are not objects": [
            *_each("args", *_NOT_OBJECTS, None),
            *_each("meta", *_NOT_OBJECTS),
        ],
        "deep arguments": [{"args": _deep(n)} for n in (66, 100, 400, 900, 3000, 6000)],
        "deep options": [{"meta": _deep(n)} for n in (66, 400, 3000)],
        "long numbers": [
            {"args": '{"n":[' + number + "]}"}
            for number in ("9" * 5000, "1" + "0" * 20000, "9" * 400 + ".5", "1e300", str(2**63))
        ],
        "options": [
            *_options("timeout", '"abc"', "-1", "[]", "1e18"),
            *_options("expires_in", '"abc"', "-1", "[]", "1e18"),
            *_options("tags", "5", '"x"', "[1]", "{}"),
            *_options("fields", "[1]", '"x"', "7"),
        ],
        "ticks": [
            *_options("tick_at", '"soon"', "5", '"9999-12-31"'),
            *_options("schedule", "5"),
        ],
    }


def _foreign() -> Iterator[Columns]:
    plain = {"now()": "now", "gen_random_uuid()": "0" * 32}
    return ({name: plain.get(text, text.strip("'"))} for name, text in NOT_A_PRODUCERS.items())


def _each(column: str, *values: object) -> list[Columns]:
    return [{column: value} for value in values]


def _options(name: str, *values: str) -> list[Columns]:
    return [{"meta": f'{{"{name}":{value}}}'} for value in values]


def _deep(levels: int) -> str:
    return '{"a":' + "[" * levels + "]" * levels + "}"


@dataclass
class Outcome:
    """How the malformed rows ended, and the good jobs between them."""

    accepted: dict[int, Columns] = field(default_factory=dict)
    good: set[int] = field(default_factory=set)
    # Lists, figures and pages that did not answer with 200.
    unanswered: list[str] = field(default_factory=list)
    # Why the API says that the first accepted row failed.
    shown: str | None = None
    # Jobs that are neither completed nor failed.
    live: set[int] = field(default_factory=set)
    completed: set[int] = field(default_factory=set)
    # By id, why a job failed.
    failed: dict[int, str] = field(default_factory=dict)

    @property
    def not_dead_letters(self) -> dict[int, Columns]:
        """The malformed rows that ended as something else."""
        return {
            job_id: columns
            for job_id, columns in self.accepted.items()
            if self.failed.get(job_id) != UNREADABLE
        }

    @property
    def not_completed(self) -> set[int]:
        """The good jobs that did not end well."""
        return self.good - self.completed


def insert(parties: Parties, rows: Iterable[Columns]) -> Outcome:
    """Insert the rows as a producer, with good jobs of the same queue behind them."""
    found = Outcome()
    with parties.connected("producer") as producer:
        for nth, columns in enumerate(rows):
            if (job_id := insert_one(producer, columns)) is not None:
                found.accepted[job_id] = columns
            if nth % 5 == 0 and (job_id := insert_one(producer, {"priority": 5})) is not None:
                found.good.add(job_id)
    return found


def run(parties: Parties, rows: Iterable[Columns], directory: Path, within: float) -> Outcome:
    """Insert the rows, and let a worker run what it can, next to a server. Both are processes."""
    with (
        serving(parties.as_role("server"), directory) as service,
        httpx.Client(base_url=service.url, timeout=30, follow_redirects=True) as caller,
    ):
        origin = {"Origin": service.url}
        caller.post("/sign-in", data={"token": service.secret}, headers=origin).raise_for_status()
        caller.headers["Authorization"] = f"Bearer {service.secret}"
        found = insert(parties, rows)
        found.unanswered += _unanswered(caller)
        with Worker(_TARGET, parties.as_role("worker"), directory, queues=QUEUE):
            wait_for(lambda: not live(parties), within)
        found.unanswered += _unanswered(caller)
        if found.accepted:
            answer = caller.get(f"/v1/jobs/{min(found.accepted)}")
            found.shown = answer.json().get("done_reason")
    read_ends(parties, found)
    return found


def read_ends(parties: Parties, found: Outcome) -> None:
    """Read how the jobs have ended."""
    found.live = live(parties)
    with parties.connected("reader") as reader:
        found.completed = {row[0] for row in reader.execute("SELECT id FROM tenure.job_archive")}
        ends = reader.execute("SELECT id, done_reason FROM tenure.job_failed")
        found.failed = dict(ends.fetchall())


def insert_one(connection: psycopg.Connection, columns: Columns) -> int | None:
    """The row's id, or None if it is refused."""
    row = {**_GOOD, **columns}
    names, places = ", ".join(row), ", ".join("%s" for _ in row)
    text = f"INSERT INTO tenure.job ({names}) VALUES ({places}) RETURNING id"  # noqa: S608 - our names
    try:
        [(job_id,)] = connection.execute(text.encode(), list(row.values())).fetchall()
    except psycopg.Error:
        return None
    else:
        return int(job_id)


def _unanswered(caller: httpx.Client) -> list[str]:
    statuses = {path: caller.get(path).status_code for path in PATHS}
    return [f"{path}: {status}" for path, status in statuses.items() if status != httpx.codes.OK]


def live(parties: Parties) -> set[int]:
    """The jobs that have not ended."""
    with parties.connected("reader") as reader:
        rows = reader.execute("SELECT id FROM tenure.job WHERE queue = %s", [QUEUE])
        return {row[0] for row in rows}
