"""The demo's processes, which end when the process that started them ends."""

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from tenure.errors import ConfigError

_PROGRAM = (
    "import sys; from tenure.worker.processes import die_with_parent; "
    "die_with_parent(int(sys.argv.pop(1))); from {module} import main; main()"
)
_WITHIN = 8.0


class Processes:
    """The running processes by name, and the directory that holds their logs."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, name: str, *arguments: str, module: str = "tenure.cli") -> None:
        """Run a `tenure` command or a demo module.

        Call this from the main thread, because the kernel ends a process when the thread that
        started it ends.
        """
        program = _PROGRAM.format(module=module)
        with self.log(name).open("ab") as log:
            self._running[name] = subprocess.Popen(  # noqa: S603 - this Python
                [sys.executable, "-c", program, str(os.getpid()), *arguments],
                cwd=self._directory,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl-C goes to the demo, which stops them in order.
            )

    def log(self, name: str) -> Path:
        """Return a process's log file."""
        return self._directory / f"{name}.log"

    def kill(self, name: str) -> None:
        """Kill a process with SIGKILL."""
        process = self._running.pop(name)
        process.kill()
        process.wait()

    def stop(self, *names: str) -> None:
        """Stop these processes (default: all) with SIGTERM, then SIGKILL any that are too slow."""
        ending = [self._running.pop(name) for name in names or list(self._running)]
        for process in ending:
            process.send_signal(signal.SIGTERM)
        for process in ending:
            with suppress(subprocess.TimeoutExpired):
                process.wait(_WITHIN)
            process.kill()
            process.wait()

    def check(self) -> None:
        """Raise ConfigError if a process has exited."""
        for name, process in self._running.items():
            if process.poll() is not None:
                log = self.log(name).read_text(errors="replace")[-2000:]
                raise ConfigError(f"{name} exited unexpectedly; fix what it reports:\n{log}")
