"""A primary and its standby, joined by a link that can be cut; promoted and rebuilt by hand."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Self

import psycopg

from support import segments
from support.cluster import Cluster, ClusterError, kept_port
from support.processes import wait_for
from support.proxy import Proxy

if TYPE_CHECKING:
    from types import TracebackType

_SETTINGS = {
    "shared_buffers": "64MB",
    "wal_sender_timeout": "10min",
    **segments.IN_DIRECTORY,
}
_CATCH_UP_WITHIN = 30.0


class Node(Cluster):
    """A server on a port that is given; a copy of another if its URL is given."""

    def __init__(self, port: int, *, of: str | None = None) -> None:
        super().__init__(15, settings=_SETTINGS)
        self._port = port
        self._of = of

    def ask(self, query: str) -> object:
        """The one value that a query answers, on this server whatever its role."""
        with psycopg.connect(self.url(), autocommit=True, connect_timeout=3) as connection:
            row = connection.execute(query.encode()).fetchone()
            return row[0] if row else None

    def _making(self) -> list[str]:
        if self._of is None:
            return super()._making()
        return [
            *("pg_basebackup", "--pgdata", "data", "--dbname", self._of, "--write-recovery-conf"),
            *("--checkpoint", "fast", "--wal-method", "stream", "--no-sync", "--no-password"),
        ]


class Pair:
    """Two servers. Leave it, and both have ended.

    With `synchronous` a commit waits for the standby whenever there is one; while the standby is
    being promoted continues alone, and what it confirms then is part of the copy.
    """

    def __init__(self, *, synchronous: bool) -> None:
        self._synchronous = synchronous
        self._ports = (kept_port(), kept_port())
        self.primary = Node(self._ports[0])
        self.standby: Node | None = None
        self.link: Proxy | None = None
        self._links = ExitStack()

    def __enter__(self) -> Self:
        try:
            self.primary.start()
            self.build()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End both servers and the link."""
        if self.standby is not None:
            self.standby.stop()
        self.primary.stop()
        self._links.close()

    def url(self, database: str = "postgres") -> str:
        """The libpq URL that finds the writable server."""
        hosts = ",".join(f"127.0.0.1:{port}" for port in self._ports)
        return f"postgresql://postgres@{hosts}/{database}?target_session_attrs=read-write"

    def build(self) -> None:
        """Make the standby again from the primary, and wait until it follows."""
        self.link = self._links.enter_context(Proxy(self.primary.url()))
        [port] = {*self._ports} - {self.primary.port}
        self.standby = Node(port, of=self.link.url)
        self.standby.start()
        if self._synchronous:
            self._name_standbys("*")
        wanted = "sync" if self._synchronous else "async"
        if not wait_for(lambda: self.state() == wanted, _CATCH_UP_WITHIN):
            raise ClusterError(f"the standby does not follow:\n{self.standby.log()[-2000:]}")

    def state(self) -> object:
        """How the standby follows, as the primary sees it."""
        return self.primary.ask(
            "SELECT sync_state FROM pg_stat_replication WHERE state = 'streaming'"
        )

    def cut(self) -> None:
        """Let nothing pass between the two."""
        if self.link is not None:
            self.link.cut()

    def restore(self) -> None:
        """Let everything pass again, also what was held up."""
        if self.link is not None:
            self.link.restore()

    def promote(self) -> Node:
        """Make the standby a primary, with what it has; the old primary is left as it is, cut off,
        and returned; the caller ends it."""
        if self.standby is None:
            raise ClusterError("there is no standby to promote; call build()")
        self.standby.ask("SELECT pg_promote(true, 60)")
        # The copy has the setting of the primary; no standby follows it yet.
        self.standby.ask("SELECT pg_reload_conf()")
        old, self.primary, self.standby = self.primary, self.standby, None
        self._name_standbys("")
        return old

    def fail_over(self) -> None:
        """SIGKILL to the primary; what the link held up is gone with it; promote."""
        self.primary.kill()
        self._links.close()
        self.promote().stop()

    def _name_standbys(self, names: str) -> None:
        if not self._synchronous:
            return
        with psycopg.connect(self.primary.url(), autocommit=True) as connection:
            # Local, or this very command would wait for the standby that it is about.
            connection.execute("SET synchronous_commit = local")
            connection.execute(f"ALTER SYSTEM SET synchronous_standby_names = '{names}'".encode())
            connection.execute("SELECT pg_reload_conf()")
