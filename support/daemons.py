"""Private servers that are one program each: Redis, its Sentinel, a cluster's nodes, PgBouncer. On
loopback ports of their own, in directories of their own, as a user without rights."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Self

from support.cluster import free_port, unprivileged_user
from support.processes import die_with_parent, wait_for

if TYPE_CHECKING:
    from types import TracebackType

_START_WITHIN = 30.0
_STOP_WITHIN = 10.0


class DaemonError(Exception):
    """The server did not do as asked; the message carries the end of its log."""


class Daemon:
    """One server, ended with the thread that started it. The port is kept across restarts."""

    program: ClassVar[str]
    package: ClassVar[str]
    # What it hears when the thread that started it ends.
    orphaned: ClassVar[signal.Signals] = signal.SIGKILL

    def __init__(self, *, within: Path | None = None) -> None:
        self.port = free_port()
        self._uid, self._gid = unprivileged_user()
        self.directory = Path(tempfile.mkdtemp(prefix=f"tenure-{self.program}-", dir=within))
        if self._uid is not None and self._gid is not None:
            os.chown(self.directory, self._uid, self._gid)
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()
        shutil.rmtree(self.directory, ignore_errors=True)

    def arguments(self) -> list[str]:
        """What the program is called with; writes its configuration first, if it needs one."""
        raise NotImplementedError

    def command(self, program: str) -> list[str]:
        """The program, found on this machine, with its arguments."""
        return [program, *self.arguments()]

    def start(self) -> None:
        """Start the server and wait until it can be connected to."""
        # Debian has some of these where only root looks.
        program = shutil.which(self.program, path=f"{os.environ['PATH']}:/usr/sbin")
        if program is None:
            raise DaemonError(f"no {self.program}; run: apt-get install {self.package}")
        with (self.directory / "log").open("ab") as log:
            self._process = subprocess.Popen(
                self.command(program),
                cwd=self.directory,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # a Ctrl-C is for the tests, not for the server
                preexec_fn=die_with_parent(self.orphaned),  # noqa: PLW1509 - it takes no lock
                user=self._uid,
                group=self._gid,
                extra_groups=None if self._uid is None else [],
            )
        if not wait_for(self._answers_or_ended, _START_WITHIN) or self._process.poll() is not None:
            self.stop()
            raise DaemonError(f"{self.program} did not start:\n{self.log()[-2000:]}")

    def stop(self, request: signal.Signals = signal.SIGTERM) -> None:
        """End the server, by SIGKILL if it ignores SIGTERM."""
        if self._process is None:
            return
        self._process.send_signal(request)
        # One that is frozen hears nothing but this.
        self._process.send_signal(signal.SIGCONT)
        try:
            self._process.wait(_STOP_WITHIN)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None

    def restart(self) -> None:
        """End it at once, without a word to its clients, and start it again."""
        self.stop(signal.SIGKILL)
        self.start()

    def freeze(self) -> None:
        """Let it accept and never answer, until it is stopped."""
        if self._process is not None:
            self._process.send_signal(signal.SIGSTOP)

    def log(self) -> str:
        """What the server has said so far."""
        return (self.directory / "log").read_text(errors="replace")

    def _answers_or_ended(self) -> bool:
        if self._process is None or self._process.poll() is not None:
            return True
        try:
            socket.create_connection(("127.0.0.1", self.port), 1).close()
        except OSError:
            return False
        return True

    def _write(self, name: str, text: str) -> Path:
        """A file of configuration, once; the server may rewrite it."""
        file = self.directory / name
        if not file.exists():
            file.write_text(text)
            if self._uid is not None and self._gid is not None:
                os.chown(file, self._uid, self._gid)
        return file


class Redis(Daemon):
    """A Redis without persistence; a replica of another if told so."""

    program = "redis-server"
    package = "redis-server"

    def __init__(self, *, password: str | None = None, replica_of: Redis | None = None) -> None:
        super().__init__()
        self._password = password
        self._master = replica_of

    @property
    def url(self) -> str:
        """How clients find it."""
        credentials = f":{self._password}@" if self._password else ""
        return f"redis://{credentials}127.0.0.1:{self.port}/0"

    def arguments(self) -> list[str]:
        """On loopback, nothing saved."""
        words = ["--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--appendonly"]
        words += ["no", "--repl-diskless-sync-delay", "0"]
        if self._password:
            words += ["--requirepass", self._password]
        if self._master:
            words += ["--replicaof", "127.0.0.1", str(self._master.port)]
        return words


class Sentinel(Daemon):
    """A Sentinel that alone decides about the service `tenure`."""

    program = "redis-server"
    package = "redis-server"

    def __init__(self, master: Redis) -> None:
        super().__init__()
        self._master = master

    @property
    def url(self) -> str:
        """How clients find the service's master."""
        return f"redis+sentinel://127.0.0.1:{self.port}/tenure/0"

    def arguments(self) -> list[str]:
        """One vote is enough, and it is cast quickly."""
        file = self._write(
            "sentinel.conf",
            f"port {self.port}\nbind 127.0.0.1\n"
            f"sentinel monitor tenure 127.0.0.1 {self._master.port} 1\n"
            "sentinel down-after-milliseconds tenure 1000\n"
            "sentinel failover-timeout tenure 5000\n",
        )
        return [str(file), "--sentinel"]


class RedisNode(Redis):
    """A Redis that can be part of a cluster. Its identity survives a restart."""

    def __init__(self) -> None:
        super().__init__()
        self._bus_port = free_port()

    def arguments(self) -> list[str]:
        """A silent node is taken for lost after a second and a half."""
        return [
            *super().arguments(),
            *("--cluster-enabled", "yes", "--cluster-port", str(self._bus_port)),
            *("--cluster-node-timeout", "1500"),
        ]


_ONE_REPLICA_EACH = ("--cluster-replicas", "1", "--cluster-yes")


class RedisCluster:
    """Three masters with a replica each, on loopback."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self.nodes: list[RedisNode] = []

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            self.nodes = [stack.enter_context(RedisNode()) for _ in range(6)]
            addresses = [f"127.0.0.1:{node.port}" for node in self.nodes]
            created = subprocess.run(
                [_cli(), "--cluster", "create", *addresses, *_ONE_REPLICA_EACH],
                capture_output=True,
                text=True,
                timeout=2 * _START_WITHIN,
                check=False,
            )
            if created.returncode or not wait_for(self.is_whole, _START_WITHIN):
                raise DaemonError(f"no cluster:\n{created.stdout[-2000:]}{created.stderr}")
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @property
    def url(self) -> str:
        """How clients find it."""
        return self.url_of(*self.nodes)

    @staticmethod
    def url_of(*nodes: RedisNode) -> str:
        """How clients find it that know only these nodes."""
        return f"redis+cluster://{','.join(f'127.0.0.1:{node.port}' for node in nodes)}"

    def is_whole(self) -> bool:
        """Whether every node says that all is well, and knows all others."""
        return all(
            "cluster_state:ok" in info and "cluster_known_nodes:6" in info
            for info in (ask(node, "CLUSTER", "INFO") for node in self.nodes)
        )


def _cli() -> str:
    program = shutil.which("redis-cli")
    if program is None:
        raise DaemonError("no redis-cli; run: apt-get install redis-tools")
    return program


def ask(node: Redis, *words: str) -> str:
    """What a Redis answers to a command, or nothing if it does not."""
    return subprocess.run(
        [_cli(), "-p", str(node.port), *words],
        capture_output=True,
        text=True,
        timeout=_STOP_WITHIN,
        check=False,
    ).stdout


class PgBouncer(Daemon):
    """A PgBouncer in front of a database (default: transaction mode)."""

    program = "pgbouncer"
    package = "pgbouncer"

    def __init__(self, *, port: int, mode: str = "transaction", **settings: object) -> None:
        super().__init__()
        self._behind = port
        self._settings = {"pool_mode": mode, "default_pool_size": 5} | settings

    def url(self, database: str) -> str:
        """The URL of a database of the server behind it."""
        return f"postgresql://postgres@127.0.0.1:{self.port}/{database}"

    def arguments(self) -> list[str]:
        """Nothing but what is said; the rest is PgBouncer's own default."""
        users = self._write("users.txt", '"postgres" ""\n')
        settings = {
            "listen_addr": "127.0.0.1",
            "listen_port": self.port,
            "unix_socket_dir": "",
            "auth_type": "trust",
            "auth_file": users,
            "admin_users": "postgres",
            "max_client_conn": 500,
        } | self._settings
        lines = "\n".join(f"{name} = {value}" for name, value in settings.items())
        behind = f"* = host=127.0.0.1 port={self._behind} user=postgres"
        file = self._write("pgbouncer.ini", f"[databases]\n{behind}\n[pgbouncer]\n{lines}\n")
        return [str(file)]
