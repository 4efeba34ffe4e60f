"""What a run stands on: a server on trial, a server for effects, workers, a client."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Self, TypeVar

import psycopg

from proof.faults import harmful, jobs
from proof.faults.crew import Post
from support.binaries import ROOT
from support.databases import Databases
from support.disk import Disk
from support.limits import MemoryLimit, ProcessLimit
from support.processes import die_with_parent, environment, wait_for
from support.proxy import Proxy
from support.store import install

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from pathlib import Path
    from random import Random

    from support.cluster import Cluster

T = TypeVar("T")
_UP_WITHIN = 90.0
# By this the bed's own connections are known to a nemesis that ends others.
OWN = "proof-bed"
_AT_WORK = (
    "SELECT w.pid FROM tenure.worker AS w WHERE w.state = 'active' AND w.pid = ANY (%(pids)s)"
)


class Bed:
    """One run's processes. Leave it, and all but the servers have ended; what these need is `kept`,
    and goes later."""

    def __init__(
        self,
        cluster: Cluster,
        effects: Cluster,
        directory: Path,
        rng: Random,
        bug: str | None,
        *,
        kept: ExitStack,
        posts: int,
        slots: int,
    ) -> None:
        directory.mkdir(parents=True)
        self._kept = kept
        self.cluster = cluster
        self.bug = bug
        self.rng = rng
        self.history = directory / "history"
        self.history.touch()
        databases = Databases(cluster)
        url = databases.create(databases.template("tenure", install))
        self.url = f"{url}?application_name={OWN}"
        elsewhere = databases if effects is cluster else Databases(effects)
        self.effects_url = elsewhere.create()
        self._run(self.url, jobs.LEDGER)
        self._run(self.effects_url, jobs.EFFECTS)
        memory = MemoryLimit(harmful.MEMORY_LIMIT * 2**20)
        self._kept.callback(memory.remove)
        self.processes = ProcessLimit(harmful.PROCESS_LIMIT)
        self._kept.callback(self.processes.remove)
        disk = self._kept.enter_context(Disk(harmful.DISK))
        usual = {
            "PROOF_HISTORY": str(self.history),
            "PROOF_EFFECTS": self.effects_url,
            "PROOF_BUG": bug or "",
            "PROOF_MEMORY": str(memory.path),
            "PROOF_PROCESSES": str(self.processes.path),
            "PROOF_DISK": str(disk.path),
            "TENURE_RUN_DIR": str(disk.path / "run"),
            "TMPDIR": str(disk.path),
        }
        self.posts = [Post(n, url, directory, usual, rng, slots) for n in range(1, posts + 1)]
        self.road = Proxy(url, rng)
        self._environment = os.environ | usual
        self._directory = directory
        self._client: subprocess.Popen[bytes] | None = None
        self.client_killed = False
        self._stack = ExitStack()

    @staticmethod
    def _run(url: str, statement: str) -> None:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(statement.encode())

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            stack.enter_context(self.road)
            for post in self.posts:
                stack.enter_context(post.proxy)
                stack.callback(post.end)
            stack.callback(self._end_client)
            self.supervise()
            if not wait_for(lambda: self._active() >= len(self.posts), _UP_WITHIN):
                raise RuntimeError(f"the workers did not come up; see the logs in {self.history}")
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def supervise(self) -> None:
        """See that there is a worker at each post."""
        for post in self.posts:
            post.fill()

    def keep(self, thing: AbstractContextManager[T]) -> T:
        """Enter something that must be there until all processes have ended."""
        return self._kept.enter_context(thing)

    def hold(self, thing: AbstractContextManager[T]) -> T:
        """Enter something that must be gone before the processes end: none dies while frozen."""
        return self._stack.enter_context(thing)

    def unharmed(self) -> Post | None:
        """A post that nothing is being done to, by the seed; None if there is no such."""
        free = [post for post in self.posts if not post.struck]
        return self.rng.choice(free) if free else None

    def rows(self, query: str, **parameters: object) -> list[tuple[Any, ...]]:
        """What the server on trial answers, asked directly."""
        with psycopg.connect(self.url, autocommit=True, connect_timeout=5) as connection:
            return connection.execute(query.encode(), parameters).fetchall()

    def at_work(self, post: Post) -> list[dict[str, str]]:
        """What the children at this post that are known to the store were started with."""
        return [environment(pid) for (pid,) in self.rows(_AT_WORK, pids=post.children())]

    @property
    def deserted(self) -> list[str]:
        """The workers that ended by themselves."""
        return [one for post in self.posts for one in post.deserted]

    def _active(self) -> int:
        query = "SELECT count(*) FROM tenure.worker WHERE state = 'active'"
        return int(self.rows(query)[0][0])

    def send_client(self, seed: int, first: int, end: int, rate: float, kinds: str) -> None:
        """Start a client that asks for the jobs with these labels."""
        words = [seed, first, end, rate, kinds]
        self.client_killed = False
        with (self._directory / "client.log").open("ab") as log:
            self._client = subprocess.Popen(  # noqa: S603 - its own client
                [sys.executable, "-m", "proof.faults.client", self.history, *map(str, words)],
                cwd=ROOT,
                env=self._environment | {"TENURE_DATABASE_URL": self.road.url},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=die_with_parent(signal.SIGKILL),  # noqa: PLW1509 - it takes no lock
            )

    @property
    def client_ended(self) -> int | None:
        """The client's exit code once it has ended; negative if by a signal."""
        return None if self._client is None else self._client.poll()

    def kill_client(self) -> bool:
        """SIGKILL, wherever it is in its work; whether it ended by that."""
        if self._client is not None and self._client.poll() is None:
            self._client.kill()
            self.client_killed = self._client.wait() == -signal.SIGKILL
            return self.client_killed
        return False

    def _end_client(self) -> None:
        if self._client is not None:
            self._client.kill()
            self._client.wait()
