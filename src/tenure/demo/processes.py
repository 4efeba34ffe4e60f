"""The processes of the demo: each is one of its own, and ends with the one that started it."""

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
    """What runs, by name. Their words are in files of the directory."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, name: str, *arguments: str, module: str = "tenure.cli") -> None:
        """Run a command of Tenure's, or a module of the demo. Only for the main thread: the kernel
        ends a process with the thread that started it."""
        program = _PROGRAM.format(module=module)
        with self.words(name).open("ab") as words:
            self._running[name] = subprocess.Popen(  # noqa: S603 - this Python
                [sys.executable, "-c", program, str(os.getpid()), *arguments],
                cwd=self._directory,
                stdin=subprocess.DEVNULL,
                stdout=words,
                stderr=words,
                start_new_session=True,  # A Ctrl-C is for the demo, which ends them in its order.
            )

    def words(self, name: str) -> Path:
        """Where a process says what it says."""
        return self._directory / f"{name}.log"

    def kill(self, name: str) -> None:
        """End one by the signal that nothing can catch."""
        process = self._running.pop(name)
        process.kill()
        process.wait()

    def stop(self, *names: str) -> None:
        """End some, all of them unless said: politely, and those that take too long by force."""
        ending = [self._running.pop(name) for name in names or list(self._running)]
        for process in ending:
            process.send_signal(signal.SIGTERM)
        for process in ending:
            with suppress(subprocess.TimeoutExpired):
                process.wait(_WITHIN)
            process.kill()
            process.wait()

    def check(self) -> None:
        """Refuse to go on without one that has ended by itself."""
        for name, process in self._running.items():
            if process.poll() is not None:
                said = self.words(name).read_text(errors="replace")[-2000:]
                raise ConfigError(f"{name} has ended by itself; mend what it says:\n{said}")
