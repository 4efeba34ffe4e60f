"""The playground: a database, a server, workers, a scheduler and a producer.

It uses a single directory and ends when this process ends, even if the process is killed.
"""

import os
import shlex
import shutil
import tempfile
import time
import urllib.request
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

from tenure._local_postgres import PrivatePostgres
from tenure.demo import story
from tenure.demo.processes import Processes
from tenure.demo.shop import app
from tenure.demo.story import Story
from tenure.errors import ConfigError
from tenure.worker.observability import open_socket

HOST = "127.0.0.1"
PORT = 8400
_STARTS_WITHIN = 60.0
_LOOK = 0.2
# Variables that would point to another database.
_IGNORED = ("TENURE_", "DATABASE_URL", "DJANGO_SETTINGS_MODULE", "PG")


class Playground:
    """The running demo. `say` prints what happens, line by line."""

    def __init__(self, *, port: int | None, say: Callable[[str], None]) -> None:
        self._port = _free(port)
        self._ending = ExitStack()
        self.directory: Path = Path(tempfile.mkdtemp(prefix="tenure-demo-"))
        self._ending.callback(shutil.rmtree, self.directory, ignore_errors=True)
        self._processes = Processes(self.directory)
        self._story = Story(self._processes, say)
        self.link: str = ""
        self.again: str = ""

    def __enter__(self) -> Self:
        try:
            self._open()
        except BaseException:
            self._ending.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._ending.close()

    def run(self, seconds: float | None) -> None:
        """Run for this many seconds, or until interrupted."""
        self._story.run(seconds)

    def _open(self) -> None:
        # The database deletes the directory when it stops, with the other processes' files.
        database = PrivatePostgres(self.directory, durable=False)
        self._ending.callback(database.stop)
        self._isolate(database.start())
        self._ending.callback(app.close)
        app.admin.schema.migrate()
        story.open_shop()
        self._ending.callback(self._processes.stop)
        badge = ("--environment", "demo", "--environment-colour", "blue")
        self._processes.start("server", "server", "--port", str(self._port), *badge)
        for name in ("worker-1", "worker-2"):
            self._story.work(name)
        self._processes.start("producer", module="tenure.demo.producer")
        self._until_served()
        url = f"http://{HOST}:{self._port}"
        self.link = f"{url}/sign-in#{story.sign_in_code()}"
        shown = shlex.quote(os.environ["TENURE_DATABASE_URL"])
        self.again = f"tenure session link demo --url {url} --database-url {shown}"

    def _isolate(self, url: str) -> None:
        """Ignore the settings of the user's own programs."""
        for name in [name for name in os.environ if name.startswith(_IGNORED)]:
            del os.environ[name]
        os.environ["TENURE_DATABASE_URL"] = url
        os.environ["TENURE_RUN_DIR"] = str(self.directory / "run")
        os.chdir(self.directory)

    def _until_served(self) -> None:
        until = time.monotonic() + _STARTS_WITHIN
        while not _answers(f"http://{HOST}:{self._port}/live"):
            self._processes.check()
            if time.monotonic() > until:
                raise ConfigError(
                    f"the server did not answer within {_STARTS_WITHIN:.0f} s; see its log: "
                    f"{self._processes.log('server')}"
                )
            time.sleep(_LOOK)


def _free(port: int | None) -> int:
    """Return the given port, else the default port, or any free port if the default is taken."""
    if port is not None:
        return _tried(port)
    try:
        return _tried(PORT)
    except ConfigError:
        return _tried(0)


def _tried(port: int) -> int:
    """Return the port if it's free. Raise ConfigError if it's taken."""
    with open_socket(HOST, port, options="--port") as on:
        free: int = on.getsockname()[1]
        return free


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=2) as answer:  # noqa: S310 - our own, on loopback
            return bool(answer.status == 200)
    except OSError:
        return False
