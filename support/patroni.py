"""PostgreSQL as two Patroni members with a synchronous standby: who leads, and how they fail."""

from __future__ import annotations

import json
import signal
import time
import urllib.request
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from support import binaries, process_reaper, segments
from support.cluster import SETTINGS, kept_port, memory
from support.daemons import Daemon, DaemonError
from support.etcd import Etcd
from support.processes import alive, children, send, wait_for

if TYPE_CHECKING:
    from types import TracebackType

# The shortest that fit together: loop_wait + 2 * retry_timeout <= ttl.
_TTL, _LOOP, _RETRY = 5, 1, 2
_ASK_WITHIN = 3.0
_SETTINGS = {
    **SETTINGS,
    **segments.IN_DIRECTORY,
    "shared_buffers": "64MB",
    "max_wal_size": "256MB",
    "wal_keep_size": "256MB",
    "wal_log_hints": "on",
}
_FORM_WITHIN = 90.0
_DIE_WITHIN = 5.0
_PYTHON = "/usr/bin/python3"


class Member(Daemon):
    """One Patroni with its server, under a guard that ends both."""

    program = "patroni"
    package = "patroni"
    orphaned = signal.SIGTERM

    def __init__(self, name: str, etcd: Etcd, settings: dict[str, str]) -> None:
        super().__init__(within=memory())
        self.name = name
        self.sql_port = kept_port()
        self._etcd = etcd
        self._settings = settings

    def __exit__(self, *reason: object) -> None:
        self.stop()
        segments.remove(self.directory / "data")
        super().__exit__(None, None, None)

    @property
    def postmaster(self) -> int | None:
        """Its server's process id; None while no server runs."""
        try:
            pid = int((self.directory / "data" / "postmaster.pid").read_text().split()[0])
        except (OSError, ValueError, IndexError):
            return None
        return pid if pid > 0 and alive(pid) else None

    def command(self, program: str) -> list[str]:
        """The guard, and under it Patroni, both by the system's Python, which has its modules."""
        source = Path(process_reaper.__file__).read_text()
        return [_PYTHON, "-c", source, _PYTHON, program, *self.arguments()]

    def arguments(self) -> list[str]:
        """Its configuration, in JSON, which is YAML too."""
        return [str(self._write("patroni.yml", json.dumps(self._configuration(), indent=1)))]

    def ask(self, path: str, body: dict[str, object] | None = None) -> dict[str, Any] | None:
        """What its REST interface answers, whatever the status; None if it does not."""
        url = f"http://127.0.0.1:{self.port}{path}"
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(url, data=data)
        try:
            with urllib.request.urlopen(request, timeout=_ASK_WITHIN) as answer:  # noqa: S310 - ours
                text = answer.read().decode()
        except OSError:
            return None
        try:
            parsed: dict[str, Any] = json.loads(text)
        except ValueError:
            return {"text": text}
        return parsed

    def kill_server(self) -> bool:
        """SIGKILL to the postmaster and all its processes; whether there was one."""
        pid = self.postmaster
        if pid is None:
            return False
        # A stopped postmaster starts no backend between the listing and the kill.
        send(pid, signal.SIGSTOP)
        family = [pid, *children(pid)]
        for one in reversed(family):
            send(one, signal.SIGKILL)
        return wait_for(lambda: not any(alive(one) for one in family), _DIE_WITHIN)

    def kill_all(self) -> None:
        """SIGKILL to Patroni and its server together; `start` brings both back."""
        self.stop()

    def _configuration(self) -> dict[str, object]:
        address = "127.0.0.1"
        trust = ["local all all trust", f"host all all {address}/32 trust"]
        hba = [*trust, f"host replication all {address}/32 trust"]
        user = {"username": "postgres", "password": "unused"}
        steady = {
            "ttl": _TTL,
            "loop_wait": _LOOP,
            "retry_timeout": _RETRY,
            "primary_start_timeout": 0,
            "synchronous_mode": True,
            "postgresql": {"use_pg_rewind": True, "use_slots": True},
        }
        return {
            "scope": "tenure",
            "name": self.name,
            "restapi": {
                "listen": f"{address}:{self.port}",
                "connect_address": f"{address}:{self.port}",
            },
            "etcd3": {"hosts": f"{address}:{self._etcd.port}"},
            "bootstrap": {
                "dcs": steady,
                "initdb": [{"encoding": "UTF8"}, {"locale": "C.UTF-8"}, {"auth": "trust"}],
            },
            "postgresql": {
                "listen": f"{address}:{self.sql_port}",
                "connect_address": f"{address}:{self.sql_port}",
                "data_dir": str(self.directory / "data"),
                "bin_dir": str(binaries.find(15)),
                "pgpass": str(self.directory / "pgpass"),
                "authentication": {"superuser": user, "replication": user, "rewind": user},
                "pg_hba": hba,
                "parameters": self._settings | {"unix_socket_directories": str(self.directory)},
                "remove_data_directory_on_rewind_failure": True,
                "remove_data_directory_on_diverged_timelines": True,
            },
        }


class Patroni:
    """Two members and their etcd. Leave it, and all of them have ended."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self.members: list[Member] = []

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            etcd = stack.enter_context(Etcd())
            for name in ("a", "b"):
                self.members.append(stack.enter_context(Member(name, etcd, dict(_SETTINGS))))
                if not self.formed(len(self.members), _FORM_WITHIN):
                    raise DaemonError(f"no cluster was formed:\n{self.members[-1].log()[-2000:]}")
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.close()

    def url(self, database: str = "postgres") -> str:
        """The libpq URL that finds the leader."""
        hosts = ",".join(f"127.0.0.1:{member.sql_port}" for member in self.members)
        return f"postgresql://postgres@{hosts}/{database}?target_session_attrs=read-write"

    def roles(self) -> dict[str, str]:
        """What each member does, as the first that answers knows: only of those that run."""
        for member in self.members:
            answer = member.ask("/cluster")
            if answer is not None and "members" in answer:
                return {
                    one["name"]: one["role"]
                    for one in answer["members"]
                    if one["state"] in ("running", "streaming")
                }
        return {}

    def leader(self) -> Member | None:
        """The leader; None while there is no leader."""
        return self._with("leader")

    def standby(self) -> Member | None:
        """The synchronous standby; None while no standby is synchronous."""
        return self._with("sync_standby")

    def formed(self, members: int, seconds: float) -> bool:
        """Whether in time there is a leader, and a synchronous standby if there are to be two."""
        wanted = {"leader", "sync_standby"} if members > 1 else {"leader"}
        deadline = time.monotonic() + seconds
        while not wanted <= set(self.roles().values()):
            if time.monotonic() > deadline:
                return False
            time.sleep(0.1)
        return True

    def switch(self, leader: Member, standby: Member) -> None:
        """Ask for the roles to be changed. It may be refused; to ask again is safe, as a leader
        that no longer leads refuses."""
        wish: dict[str, object] = {"leader": leader.name, "candidate": standby.name}
        leader.ask("/switchover", wish)

    def _with(self, role: str) -> Member | None:
        roles = self.roles()
        return next((m for m in self.members if roles.get(m.name) == role), None)
