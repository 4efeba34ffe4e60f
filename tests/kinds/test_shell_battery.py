"""Commands that misbehave, under real workers: nothing of them survives its lease.

A witness scans /proc for each command's mark. Where a lease must end, it lasts three seconds.
Every command also ends by itself after a while, and every fork bomb has a fixed number of forks, so
that a broken guard can't take the machine along.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import tempfile
import textwrap
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest

from support.processes import alive, children, family, send, stopped
from support.store import install
from support.workers import Bed, Worker, soon
from tenure import Tenure
from tenure._model.job import State
from tests.kinds.shell_acts import DAEMON, PYTHON, USER, WRITES, marked, writes

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from support.databases import Databases
    from tenure._model.attempt import AttemptRow
    from tenure._model.ids import JobId
    from tenure._model.job import JobRow

LEASE = 3.0
TARGET = "tests.kinds.shell_app:app"
# Other users can't read root's.
SYSTEM_PYTHON = "/usr/bin/python3"
LIMITS = {"memory": "512MiB", "files": 1024, "file_size": "8MiB", "processes": 64}


@dataclass(frozen=True, slots=True)
class Shell:
    """A database, a worker that runs commands, and a directory where they may write."""

    bed: Bed
    worker: Worker
    app: Tenure
    directory: Path
    queue: str

    def start(self, argv: Sequence[str], **options: Any) -> tuple[JobId, str]:
        """Enqueue a command; its job, and its mark."""
        mark = uuid4().hex
        arguments = {name: options.pop(name) for name in ("stdin",) if name in options}
        call = self.app.shell(argv, env={"MARK": mark}, **arguments)
        [job_id] = self.bed.enqueue(
            [call.using(**{"max_attempts": 1, "queue": self.queue, **options}).bind()]
        )
        return job_id, mark

    def python(self, code: str, **options: Any) -> tuple[JobId, str]:
        """Enqueue Python code as a command."""
        return self.start([PYTHON, "-I", "-c", textwrap.dedent(code)], **options)

    def end(self, job_id: JobId, within: float = 60) -> tuple[JobRow, AttemptRow]:
        """The job once it has ended, and its last attempt."""
        soon(lambda: self.bed.job(job_id).ended_at is not None, within, "the job does not end")
        return self.bed.job(job_id), self.bed.attempts(job_id)[-1]

    def run(self, code: str, **options: Any) -> tuple[JobRow, AttemptRow]:
        """Run Python code as a command; nothing of it is left once its job has ended."""
        job_id, mark = self.python(code, **options)
        ended = self.end(job_id)
        assert marked({"MARK": mark}) == []
        return ended


def environment(directory: Path, *, scale: float = 1, **settings: Any) -> Mapping[str, str]:
    """A worker's variables. Its lease lasts 30 s times the scale."""
    table = {
        "allow": [PYTHON, "/usr/bin/dd"],
        "user": USER,
        "cwd": [str(directory)],
        "env": ["MARK"],
        **LIMITS,
        **settings,
    }
    return {"TENURE_KINDS_SHELL": json.dumps(table), "LEASE_SCALE": str(scale)}


@pytest.fixture(scope="module")
def bed(databases: Databases, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bed]:
    url = databases.create(databases.template("tenure", install))
    bed = Bed(url, tmp_path_factory.mktemp("bed"))
    yield bed
    bed.close()
    databases.drop(url)


@pytest.fixture(scope="module")
def shell(bed: Bed, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    """A worker for all commands that leave the worker alone."""
    directory = tmp_path_factory.mktemp("work")
    app = Tenure(bed.url)
    # The worker inherits this: only its own limit keeps commands from dumping core.
    soft, hard = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (hard, hard))
    with Worker(
        TARGET, bed.url, bed.directory, environment(directory), kinds="shell", queues="shell"
    ) as worker:
        resource.setrlimit(resource.RLIMIT_CORE, (soft, hard))
        yield Shell(bed, worker, app, directory, "shell")
    app.close()


def test_children_end_with_the_command(shell: Shell) -> None:
    job, _ = shell.run(
        """
        import os, time
        for _ in range(20):
            if not os.fork():
                time.sleep(60)
        print("done")
        """
    )
    assert job.result["stdout"] == "done\n"


def test_daemon_ends_with_the_command(shell: Shell) -> None:
    job, _ = shell.run(DAEMON + "daemon(lambda: time.sleep(60)); time.sleep(0.3); print('done')")
    assert job.result["stdout"] == "done\n"


def test_daemon_ends_at_the_timeout(shell: Shell) -> None:
    job, attempt = shell.run(DAEMON + "daemon(lambda: time.sleep(60)); time.sleep(60)", timeout=0.7)
    assert (job.state, attempt.outcome.value) == (State.FAILED, "timed_out")


def test_daemons_that_keep_moving_end(shell: Shell) -> None:
    """Each process forks a successor in a session of its own, and exits."""
    shell.run(
        """
        import os, signal, time
        until = time.time() + 20
        for request in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
            signal.signal(request, signal.SIG_IGN)
        for _ in range(4):
            if not os.fork():
                while time.time() < until:
                    if os.fork():
                        os._exit(0)
                    os.setsid()
                    time.sleep(0.002)
                os._exit(0)
        time.sleep(60)
        """,
        timeout=0.7,
    )


def test_sigterm_comes_first(shell: Shell) -> None:
    _, attempt = shell.run(
        """
        import signal, sys, time
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(print("cleaned up", flush=True)))
        time.sleep(60)
        """,
        timeout=3,
    )
    assert "cleaned up" in (attempt.log or "")


def test_ignored_sigterm_is_followed_by_sigkill(shell: Shell) -> None:
    job, attempt = shell.run(
        """
        import os, signal, time
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        os.fork()
        os.fork()
        time.sleep(60)
        """,
        timeout=0.5,
    )
    assert (job.state, attempt.outcome.value) == (State.FAILED, "timed_out")


def test_stopped_command_ends(shell: Shell) -> None:
    _, attempt = shell.run(
        """
        import os, signal
        if not os.fork():
            os.setsid()
        os.kill(os.getpid(), signal.SIGSTOP)
        """,
        timeout=0.5,
    )
    assert attempt.outcome.value == "timed_out"


def test_cancelled_command_ends(shell: Shell) -> None:
    job_id, mark = shell.python(DAEMON + "daemon(lambda: time.sleep(60)); time.sleep(60)")
    soon(lambda: len(marked({"MARK": mark})) >= 2, 30, "the command does not start")
    shell.bed.cancel(job_id)
    job, _ = shell.end(job_id)
    assert job.state is State.CANCELLED
    assert marked({"MARK": mark}) == []


def test_output_flood_neither_blocks_nor_fills_memory(shell: Shell) -> None:
    """Other commands start and end meanwhile."""
    [child] = shell.worker.children
    flood, mark = shell.python(
        """
        import os, time
        block, until = b"x" * 65535 + b"\\n", time.time() + 20
        while time.time() < until:
            os.write(1, block)
            os.write(2, block)
        """,
        timeout=3,
    )
    soon(lambda: bool(marked({"MARK": mark})), 30, "the command does not start")
    before = _resident(child)
    job, _ = shell.run("print('meanwhile')")
    assert job.result["stdout"] == "meanwhile\n"
    _, attempt = shell.end(flood)
    assert attempt.outcome.value == "timed_out"
    assert len(attempt.log or "") <= 16 * 1024
    assert _resident(child) - before < 32 * 2**20
    assert marked({"MARK": mark}) == []


def test_flood_that_ends_keeps_its_tail(shell: Shell) -> None:
    job, attempt = shell.run(
        """
        import os, sys
        for n in range(3000):
            sys.stdout.write("y" * 65535 + "\\n")
        print("the end")
        """
    )
    assert job.state is State.COMPLETED
    assert job.result["stdout"].endswith("y\nthe end\n")
    assert 1000 < len(job.result["stdout"]) <= 56 * 1024
    assert (attempt.log or "").endswith("the end\n")


def test_output_that_is_not_text_is_kept_as_text(shell: Shell) -> None:
    job, _ = shell.run("import os; os.write(1, bytes(range(256)) * 1000)")
    assert job.state is State.COMPLETED
    assert "ABC" in job.result["stdout"]


def test_no_core_is_dumped(shell: Shell) -> None:
    _, attempt = shell.run("import os; os.abort()")
    assert attempt.error_message == "python was killed by SIGABRT"
    assert not list(shell.directory.glob("*core*"))


def test_zombies_are_reaped(shell: Shell) -> None:
    """Orphans are reaped while the command runs, and what it doesn't reap itself at its end."""
    job, _ = shell.run(
        """
        import os, time
        for _ in range(30):
            if not os.fork():
                if os.fork():
                    os._exit(0)
                os._exit(0)
        time.sleep(1)
        mine = [pid for pid in os.listdir("/proc") if pid.isdigit()]
        zombies = 0
        for pid in mine:
            try:
                fields = open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()
            except OSError:
                continue
            zombies += fields[0] == "Z" and int(fields[1]) == os.getppid()
        print(zombies)
        """
    )
    assert job.result["stdout"] == "0\n"
    [child] = shell.worker.children
    assert [pid for pid in family(child)[1:] if not alive(pid)] == []


def test_ten_thousand_files(shell: Shell) -> None:
    job, attempt = shell.run(
        """
        import os
        os.makedirs("many", exist_ok=True)
        for n in range(10_000):
            open(f"many/{n}", "w").close()
        opened = []
        try:
            for _ in range(10_000):
                opened.append(open("many/0"))
        except OSError as error:
            print(len(opened), error.strerror)
        """
    )
    assert job.state is State.COMPLETED, attempt.error_message
    count, _, reason = job.result["stdout"].strip().partition(" ")
    assert 900 < int(count) < 1024
    assert reason == "Too many open files"
    assert len(list((shell.directory / "many").iterdir())) == 10_000


def test_memory_is_limited(shell: Shell) -> None:
    _, attempt = shell.run("x = bytearray(1 << 30)")
    assert attempt.error_message == "python exited with code 1: MemoryError"


def test_file_size_is_limited(shell: Shell) -> None:
    job_id, _ = shell.start(["dd", "if=/dev/zero", "of=large", "bs=1M", "count=100"])
    _, attempt = shell.end(job_id)
    assert (attempt.error_message or "").startswith("dd was killed by SIGXFSZ (limit of file size")
    assert (shell.directory / "large").stat().st_size == 8 * 2**20


@pytest.fixture(scope="module")
def limited(bed: Bed, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    """A worker whose commands aren't root's: the kernel doesn't limit root's processes."""
    app = Tenure(bed.url)
    user = "nobody" if USER == "root" else USER
    table = {"allow": [SYSTEM_PYTHON], "env": ["MARK"], "user": user, "processes": 64, "cpu": 2}
    with Worker(
        TARGET,
        bed.url,
        bed.directory,
        {"TENURE_KINDS_SHELL": json.dumps(table), "LEASE_SCALE": "1"},
        kinds="shell",
        queues="limited",
    ) as worker:
        yield Shell(bed, worker, app, tmp_path_factory.mktemp("none"), "limited")
    app.close()


@pytest.mark.parametrize("moves", ["pass", "os.setsid()"])
def test_fork_bomb_is_bounded_and_ended(limited: Shell, moves: str) -> None:
    code = f"""
        import os, time
        # Each fork takes one of 400 bytes, so that this bomb ends by itself.
        take, give = os.pipe()
        os.write(give, b"x" * 400)
        os.set_blocking(take, False)
        until = time.time() + 20
        while time.time() < until:
            try:
                os.read(take, 1)
                if not os.fork():
                    {moves}
            except OSError:
                time.sleep(0.01)
        """
    job_id, mark = limited.start([SYSTEM_PYTHON, "-I", "-c", textwrap.dedent(code)])
    most = 0

    def is_over() -> bool:
        nonlocal most
        most = max(most, len(marked({"MARK": mark})))
        return limited.bed.job(job_id).ended_at is not None

    soon(is_over, 30, "the bomb does not end")
    job, attempt = limited.end(job_id)
    assert job.done_reason == "gave_up"
    assert "started more than 64 processes" in (attempt.error_message or "")
    # The kernel's limit is a little higher than the guard's.
    assert most <= 64 + 64 + 16
    assert marked({"MARK": mark}) == []


def test_command_of_another_user_cannot_see_or_signal_the_worker(limited: Shell) -> None:
    [child] = limited.worker.children
    code = f"""
        import os
        for pid in ({child}, os.getppid()):
            for attack in (lambda: open(f"/proc/{{pid}}/environ").read(), lambda: os.kill(pid, 0)):
                try:
                    attack()
                    print("did")
                except OSError:
                    pass
        print(os.getuid() == os.geteuid() != 0, os.getgroups() == [os.getgid()])
        """
    job_id, _ = limited.start([SYSTEM_PYTHON, "-I", "-c", textwrap.dedent(code)])
    job, _ = limited.end(job_id)
    assert (job.result or {}).get("stdout") == "True True\n"


def test_processor_time_is_limited(limited: Shell) -> None:
    code = "import time\nuntil = time.time() + 100\nwhile time.time() < until: pass"
    job_id, _ = limited.start([SYSTEM_PYTHON, "-I", "-c", code])
    _, attempt = limited.end(job_id, within=100)
    # The kernel sends SIGXCPU, then SIGKILL.
    assert attempt.error_message in {
        f"python3 was killed by {name} (limit of processor time: 2 s)"
        for name in ("SIGXCPU", "SIGKILL")
    }


def test_killed_guard_leaves_nothing(shell: Shell) -> None:
    job_id, mark = shell.python(DAEMON + "daemon(lambda: time.sleep(60)); time.sleep(60)")
    soon(lambda: len(marked({"MARK": mark})) >= 2, 30, "the command does not start")
    [child] = shell.worker.children
    [guard] = children(child)
    send(guard, signal.SIGKILL)
    _, attempt = shell.end(job_id)
    assert attempt.error_type == "GuardLost"
    assert marked({"MARK": mark}) == []


def _resident(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * resource.getpagesize()


@pytest.fixture
def own_worker(bed: Bed, tmp_path: Path) -> Iterator[Shell]:
    """A worker that a test may break, and only it."""
    app = Tenure(bed.url)
    where = environment(tmp_path, scale=0.1)
    queue = uuid4().hex
    with Worker(TARGET, bed.url, bed.directory, where, kinds="shell", queues=queue) as worker:
        yield Shell(bed, worker, app, tmp_path, queue)
    app.close()


@pytest.mark.parametrize("whole", [False, True])
def test_killed_worker_takes_its_commands_along(own_worker: Shell, whole: bool) -> None:
    """Kill the process that runs the job, or the whole worker: everything ends within the lease,
    and before the next attempt begins."""
    shell = own_worker
    job_id, mark = shell.python(WRITES, max_attempts=3)
    soon(lambda: len(writes(shell.directory / mark)) == 1, 30, "the command does not start")
    [child] = shell.worker.children
    killed_at = time.time()
    send(shell.worker.pid if whole else child, signal.SIGKILL)
    soon(lambda: not marked({"MARK": mark}), LEASE, "a process outlives its worker")
    [last] = [max(at) for at in writes(shell.directory / mark).values()]
    assert last - killed_at < 1
    if whole:
        return
    shell.end(job_id)
    written = writes(shell.directory / mark)
    first, second = sorted(written)
    assert max(written[first]) < min(written[second])
    assert marked({"MARK": mark}) == []


def test_stopped_worker_loses_its_commands_before_the_lease(own_worker: Shell) -> None:
    """Every process of the worker stands still; the guard kills the command by its own clock."""
    shell = own_worker
    job_id, mark = shell.python(WRITES, max_attempts=3)
    soon(lambda: len(writes(shell.directory / mark)) == 1, 30, "the command does not start")
    [child] = shell.worker.children
    for pid in (shell.worker.pid, child):
        send(pid, signal.SIGSTOP)
    soon(lambda: stopped(child), 5, "the worker does not stop")
    lease_ends_at = shell.bed.job(job_id).lease_expires_at
    assert lease_ends_at is not None
    soon(lambda: not marked({"MARK": mark}), LEASE, "a process outlives its lease")
    [last] = [max(at) for at in writes(shell.directory / mark).values()]
    assert last < lease_ends_at.timestamp()
    for pid in (child, shell.worker.pid):
        send(pid, signal.SIGCONT)


def test_drained_worker_ends_its_commands(bed: Bed, tmp_path: Path) -> None:
    app = Tenure(bed.url)
    where = environment(tmp_path, scale=0.1)
    with Worker(
        TARGET, bed.url, bed.directory, where, kinds="shell", queues="drained", grace=2
    ) as worker:
        shell = Shell(bed, worker, app, tmp_path, "drained")
        job_id, mark = shell.python(WRITES, max_attempts=3)
        soon(lambda: len(writes(shell.directory / mark)) == 1, 30, "the command does not start")
        worker.send(signal.SIGTERM)
        worker.wait(15)
        assert marked({"MARK": mark}) == []
        assert bed.job(job_id).state is State.QUEUED
        bed.cancel(job_id)
    app.close()


@pytest.fixture(scope="module")
def sandbox(bed: Bed, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    """A worker that runs commands in bubblewrap. One directory is writable."""
    directory = tmp_path_factory.mktemp("sandbox")
    app = Tenure(bed.url)
    where = environment(directory, sandbox="bwrap", writable=[str(directory)])
    with Worker(
        TARGET,
        bed.url,
        bed.directory,
        where,
        kinds="shell",
        queues="sandbox",
    ) as worker:
        yield Shell(bed, worker, app, directory, "sandbox")
    app.close()


def test_sandbox_has_no_network_and_a_read_only_root(sandbox: Shell, tmp_path: Path) -> None:
    canary = tmp_path / "canary"
    canary.write_text("alive")
    places = ["/etc/tenure-was-here", "/root/tenure-was-here", "/usr/tenure-was-here"]
    job, _ = sandbox.run(
        f"""
        import os, socket
        for path in {[str(canary), *places]!r}:
            for attack in (lambda: open(path, "w"), lambda: os.remove(path)):
                try:
                    attack()
                except OSError as error:
                    pass
                else:
                    print("did", path)
        for address in ("127.0.0.1", "1.1.1.1"):
            try:
                socket.create_connection((address, {_port(sandbox.bed.url)}), 1)
                print("connected to", address)
            except OSError:
                pass
        open("inside", "w").write("kept")
        open("/tmp/tenure-private", "w").write("not kept")
        processes = [pid for pid in os.listdir("/proc") if pid.isdigit()]
        print(len(processes) < 5, os.listdir("/tmp") != [])
        """,
    )
    assert job.result["stdout"] == "True True\n"
    assert canary.read_text() == "alive"
    assert (sandbox.directory / "inside").read_text() == "kept"
    assert not list(Path(tempfile.gettempdir()).glob("tenure-private"))
    assert not [place for place in places if Path(place).exists()]


def test_sandboxed_daemon_ends_and_sigterm_comes_first(sandbox: Shell) -> None:
    _, attempt = sandbox.run(
        DAEMON
        + """
import sys
signal.signal(signal.SIGTERM, lambda *_: sys.exit(print("cleaned up", flush=True)))
daemon(lambda: time.sleep(60))
time.sleep(60)
""",
        timeout=3,
    )
    assert attempt.outcome.value == "timed_out"
    assert "cleaned up" in (attempt.log or "")


def test_sandboxed_signal_is_named(sandbox: Shell) -> None:
    _, attempt = sandbox.run("import os; os.abort()")
    assert attempt.error_message == "python was killed by SIGABRT"
    _, attempt = sandbox.run("raise SystemExit(64)")
    assert attempt.error_message == "python exited with code 64"


def test_killed_worker_takes_its_sandboxes_along(sandbox: Shell) -> None:
    _, mark = sandbox.python(WRITES, max_attempts=3)
    soon(lambda: len(writes(sandbox.directory / mark)) == 1, 30, "the command does not start")
    [child] = sandbox.worker.children
    send(child, signal.SIGKILL)
    soon(lambda: len(writes(sandbox.directory / mark)) == 2, 60, "the next attempt does not start")
    written = writes(sandbox.directory / mark)
    first, second = sorted(written)
    assert max(written[first]) < min(written[second])


def _port(url: str) -> int:
    """A port that listens on this machine, or would."""
    del url
    return int(os.environ.get("PGPORT", "22"))
