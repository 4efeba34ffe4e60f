"""Run one command, and kill its whole process tree before its lease ends.

The worker starts this file as its own process (`python -I -S guard.py FD …`). It uses only the
standard library, so that it starts fast. The guard is a subreaper: processes that leave the
command's session, such as daemons, become its children. It holds a pipe from the worker. If the
worker dies, the pipe closes. If the worker is stopped or cut off, the pipe is silent and the
lease's deadline arrives. In both cases the guard kills the tree. Neither a blocked event loop nor
a stopped worker can prevent that.

The guard also reads the command's output, so that a flood of it costs the worker nothing.
"""

import ctypes
import errno
import fcntl
import json
import os
import resource
import select
import signal
import sys
import time
from collections import deque
from contextlib import suppress
from typing import Any, NoReturn

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_PR_SET_NO_NEW_PRIVS = 38
_F_SETPIPE_SZ = 1031
_CONTROL, _STATUS = 0, 1
_CHUNK = 65536
# poll() doesn't count the time that the machine is suspended. Check the deadline this often.
_LOOK = 0.25
_PROGRESS_INTERVAL = 0.25
_PROGRESS = b"::progress "
_LONGEST_LINE = 512
_LONGEST_MESSAGE = 200
# How long the worker may take to read the last message.
_LAST_MESSAGE_WITHIN = 10.0
_STATUS_SIZE = 1024 * 1024
# The kernel kills the command before the guard and the worker if memory runs out.
_OOM_SCORE = "800"
# The guard counts the command's processes and kills it at its limit. The kernel's limit is a little
# higher. It is what stops a fork bomb, because the guard may hardly get to run next to one.
_SPARE_PROCESSES = 64
_MOST_PROCESSES = 1 << 22
_NICE = -10


def boottime() -> float:
    """Return the clock of the lease, which keeps running while the machine is suspended."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class Tail:
    """The last bytes of a stream."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._chunks: deque[bytes] = deque()
        self._size = 0
        self.total: int = 0

    def add(self, chunk: bytes) -> None:
        """Append a chunk, and drop chunks that are no longer part of the tail."""
        self._chunks.append(chunk)
        self._size += len(chunk)
        self.total += len(chunk)
        while self._size - len(self._chunks[0]) >= self._limit:
            self._size -= len(self._chunks.popleft())

    def text(self) -> str:
        """Return the tail as text."""
        return b"".join(self._chunks)[-self._limit :].decode(errors="replace")


class ProgressLines:
    """Finds lines such as `::progress 30/100 message` in a stream, and keeps the last one."""

    def __init__(self) -> None:
        self._begun = b""

    def add(self, chunk: bytes) -> tuple[int, int | None, str | None] | None:
        """Return the last report in this chunk, if it has one."""
        if _PROGRESS not in self._begun + chunk:
            # Keep the start of a line that may become a report.
            last = (self._begun + chunk).rpartition(b"\n")[2]
            self._begun = last if len(last) < _LONGEST_LINE else b" "
            return None
        *lines, last = (self._begun + chunk).split(b"\n")
        self._begun = last if len(last) < _LONGEST_LINE else b" "
        found = (parse_progress(line) for line in reversed(lines) if line.startswith(_PROGRESS))
        return next((report for report in found if report is not None), None)


def parse_progress(line: bytes) -> tuple[int, int | None, str | None] | None:
    """Return done, total and message of a progress line, or None if it isn't one."""
    counts, _, message = line[len(_PROGRESS) :].strip().partition(b" ")
    done, slash, total = counts.partition(b"/")
    if not done.isdigit() or (slash and not total.isdigit()) or len(counts) > 2 * 18 + 1:
        return None
    text = message.strip().decode(errors="replace")[:_LONGEST_MESSAGE]
    return int(done), int(total) if slash else None, text or None


def processes() -> dict[int, tuple[int, int, bytes]]:
    """Return the parent, group and state of each process that this one can see."""
    seen = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            with (
                suppress(OSError, ValueError, IndexError),
                open(f"/proc/{name}/stat", "rb") as file,
            ):
                # After the name, in parentheses: state, parent, group.
                fields = file.read().rpartition(b")")[2].split()
                seen[int(name)] = int(fields[1]), int(fields[2]), fields[0]
    return seen


def descendants(root: int) -> dict[int, tuple[int, int, bytes]]:
    """Return the parent, group and state of each descendant of a process."""
    children: dict[int, list[int]] = {}
    seen = processes()
    for pid, (parent, _, _) in seen.items():
        children.setdefault(parent, []).append(pid)
    found: dict[int, tuple[int, int, bytes]] = {}
    queue = [root]
    while queue:
        for pid in children.get(queue.pop(), ()):
            if pid not in found:
                found[pid] = seen[pid]
                queue.append(pid)
    return found


def threads_of(user: int) -> int:
    """Return how many processes and threads of a user this process can see."""
    count = 0
    for name in os.listdir("/proc"):
        if name.isdigit():
            with (
                suppress(OSError, ValueError, IndexError),
                open(f"/proc/{name}/stat", "rb") as file,
            ):
                if os.fstat(file.fileno()).st_uid == user:
                    count += int(file.read().rpartition(b")")[2].split()[17])
    return count


def process_limit(user: int, most: int) -> int:
    """Return an RLIMIT_NPROC that lets a user start about `most` more processes.

    The kernel counts a user's processes in all containers, and some of them may not be visible
    here. So try the limit, and double it if the user already has more.
    """
    limit = threads_of(user) + most + _SPARE_PROCESSES
    while limit < _MOST_PROCESSES and not _can_fork(user, limit):
        limit *= 2
    return limit


def _can_fork(user: int, limit: int) -> bool:
    probe = os.fork()
    if not probe:
        code = 1
        with suppress(OSError):
            set_limit(resource.RLIMIT_NPROC, limit)
            os.setresuid(user, user, user)
            if not os.fork():
                os._exit(0)
            os.wait()
            code = 0
        os._exit(code)
    return os.waitpid(probe, 0)[1] == 0


def set_limit(number: int, limit: int) -> None:
    """Lower a resource limit of this process."""
    _, hard = resource.getrlimit(number)
    within = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
    resource.setrlimit(number, (within, within))


def send_signal(tree: dict[int, tuple[int, int, bytes]], request: signal.Signals) -> None:
    """Signal processes, group by group first: a group's members can't fork in between."""
    for group in {group for _, group, _ in tree.values()} - {os.getpgrp(), 0}:
        with suppress(OSError):
            os.killpg(group, request)
    for pid in tree:
        with suppress(OSError):
            os.kill(pid, request)


class Guard:
    """One command, from its start until nothing of it is left."""

    def __init__(self, spec: dict[str, Any]) -> None:
        self._spec = spec
        self._stop_at: float = spec["stop_at"]
        self._grace: float = spec["grace"]
        self._kill_at = float("inf")
        self._reason: str | None = None
        self._most_processes: int = spec["processes"]
        self._looked_at = 0.0
        self._command = 0
        self._status: int | None = None
        self._tail = Tail(spec["log_limit"])
        self._stdout = Tail(spec["stdout_limit"])
        self._readers: dict[int, tuple[ProgressLines, bool]] = {}
        self._stdin = -1
        self._input = memoryview((spec["stdin"] or "").encode(errors="replace"))
        self._control = b""
        self._outbox = b""
        self._progress: tuple[int, int | None, str | None] | None = None
        self._progress_sent_at = 0.0
        self._poll = select.poll()
        self._wakeup = -1

    def run(self) -> None:
        """Run the command until it ends or must end, kill what is left of it, and report."""
        # The guard must get to run even if the command uses all processors.
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, 0, _NICE)
        self._spec["process_limit"] = process_limit(self._spec["user"], self._most_processes)
        self._listen()
        started_at = boottime()
        failure = self._start()
        if failure is not None:
            self._send_last({"failed": failure})
            return
        self._queue({"started": self._command})
        while not self._must_kill(boottime()):
            self._wait(_LOOK)
        seconds = boottime() - started_at
        left_behind = self._kill()
        self._drain()
        self._send_last(
            {
                "ended": {
                    "status": self._status,
                    "reason": self._reason or "exit",
                    "seconds": seconds,
                    "left_behind": left_behind,
                    "stdout": self._stdout.text(),
                    "stdout_size": self._stdout.total,
                    "log": self._tail.text(),
                    "log_size": self._tail.total,
                }
            }
        )

    def _listen(self) -> None:
        self._wakeup, write = os.pipe()
        os.set_blocking(self._wakeup, False)
        os.set_blocking(write, False)
        signal.set_wakeup_fd(write, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        # The kernel sends SIGTERM if the worker dies.
        signal.signal(signal.SIGTERM, lambda *_: self._begin_end("worker", 0.0))
        for ignored in (signal.SIGINT, signal.SIGHUP, signal.SIGPIPE):
            signal.signal(ignored, signal.SIG_IGN)
        os.set_blocking(_CONTROL, False)
        os.set_blocking(_STATUS, False)
        # The last message then fits, even if the worker is stopped.
        with suppress(OSError):
            fcntl.fcntl(_STATUS, _F_SETPIPE_SZ, _STATUS_SIZE)
        self._poll.register(self._wakeup, select.POLLIN)
        self._poll.register(_CONTROL, select.POLLIN)

    def _start(self) -> dict[str, Any] | None:
        """Start the command. Return what failed, or None."""
        stdout, their_stdout = os.pipe()
        stderr, their_stderr = os.pipe()
        failed, their_failed = os.pipe()
        if self._input:
            their_stdin, self._stdin = os.pipe()
        else:
            their_stdin = os.open(os.devnull, os.O_RDONLY)
        self._command = os.fork()
        if not self._command:
            try:
                become(self._spec, (their_stdin, their_stdout, their_stderr))
            except BaseException as error:  # noqa: BLE001 - reported to the worker
                failure = {
                    "error": str(error) if isinstance(error, Refused) else "",
                    "errno": getattr(error, "errno", None),
                    "text": f"{type(error).__name__}: {error}",
                }
                os.write(their_failed, json.dumps(failure).encode()[:4096])
            finally:
                os._exit(127)
        for fd in (their_stdin, their_stdout, their_stderr, their_failed):
            os.close(fd)
        with open(failed, "rb") as file:
            failure_text = file.read()
        if failure_text:
            os.waitpid(self._command, 0)
            reported: dict[str, Any] = json.loads(failure_text)
            return reported
        for fd, is_stdout in ((stdout, True), (stderr, False)):
            os.set_blocking(fd, False)
            self._readers[fd] = ProgressLines(), is_stdout
            self._poll.register(fd, select.POLLIN)
        if self._stdin >= 0:
            os.set_blocking(self._stdin, False)
            self._poll.register(self._stdin, select.POLLOUT)
        return None

    def _must_kill(self, now: float) -> bool:
        """Return whether nothing of the command may live any longer."""
        if self._status is not None or now >= self._kill_at:
            return True
        if self._reason is None and now >= self._stop_at:
            self._begin_end("lease", self._stop_at + self._grace)
            return now >= self._kill_at
        if now >= self._looked_at + _LOOK:
            self._looked_at = now
            if len(descendants(os.getpid())) > self._most_processes:
                self._begin_end("processes", 0.0)
                return True
        return False

    def _begin_end(self, reason: str, kill_at: float) -> None:
        """Ask the command to end, and kill it later. A kill time of 0 means immediately."""
        self._kill_at = min(self._kill_at, kill_at)
        if self._reason is None:
            self._reason = reason
            if kill_at and self._command:
                self._terminate()

    def _terminate(self) -> None:
        tree = descendants(os.getpid())
        if not self._spec["sandbox"]:
            send_signal(tree, signal.SIGTERM)
            return
        # bwrap and its process 1 would end at once, and the command with them.
        for pid, (parent, _, _) in tree.items():
            if self._command not in (pid, parent):
                with suppress(OSError):
                    os.kill(pid, signal.SIGTERM)

    def _wait(self, seconds: float) -> None:
        now = boottime()
        self._offer_progress(now)
        until = min(now + seconds, self._stop_at if self._reason is None else self._kill_at)
        if self._progress is not None and not self._outbox:
            until = min(until, self._progress_sent_at + _PROGRESS_INTERVAL)
        if self._outbox:
            self._poll.register(_STATUS, select.POLLOUT)
        for fd, events in self._poll.poll(max(until - now, 0.0) * 1000 + 1):
            if fd == self._wakeup:
                with suppress(BlockingIOError):
                    os.read(self._wakeup, 4096)
            elif fd == _CONTROL:
                self._obey()
            elif fd == _STATUS:
                self._flush()
            elif fd == self._stdin:
                self._feed(events)
            elif fd in self._readers:
                self._read(fd)
        if self._outbox:
            with suppress(KeyError):
                self._poll.unregister(_STATUS)
        self._reap()

    def _obey(self) -> None:
        """Read the worker's messages. A closed pipe means that the worker is dead."""
        try:
            read = os.read(_CONTROL, 4096)
        except BlockingIOError:
            return
        if not read:
            self._poll.unregister(_CONTROL)
            self._begin_end("worker", 0.0)
            return
        *lines, self._control = (self._control + read).split(b"\n")
        for line in lines:
            verb, _, value = line.partition(b" ")
            if verb == b"extend":
                self._stop_at = max(self._stop_at, float(value))
            elif verb == b"stop":
                self._begin_end("stop", boottime() + float(value))
            elif verb == b"kill":
                self._begin_end("stop", 0.0)

    def _feed(self, events: int) -> None:
        """Write the next part of the command's input."""
        try:
            if not events & select.POLLERR:
                self._input = self._input[os.write(self._stdin, self._input[:_CHUNK]) :]
        except BlockingIOError:
            return
        except OSError:
            events = select.POLLERR
        if not self._input or events & select.POLLERR:
            self._poll.unregister(self._stdin)
            os.close(self._stdin)
            self._stdin = -1

    def _read(self, fd: int) -> bool:
        """Read a chunk of output. Return whether there was one."""
        try:
            chunk = os.read(fd, _CHUNK)
        except BlockingIOError:
            return False
        if not chunk:
            self._poll.unregister(fd)
            os.close(fd)
            del self._readers[fd]
            return False
        lines, is_stdout = self._readers[fd]
        self._tail.add(chunk)
        if is_stdout:
            self._stdout.add(chunk)
        self._progress = lines.add(chunk) or self._progress
        return True

    def _offer_progress(self, now: float) -> None:
        if self._progress is None or self._outbox:
            return
        if now >= self._progress_sent_at + _PROGRESS_INTERVAL:
            done, total, message = self._progress
            self._progress, self._progress_sent_at = None, now
            report = {"done": done, "total": total, "message": message}
            log = {"log": self._tail.text(), "log_size": self._tail.total}
            self._queue({"progress": {**report, **log}})

    def _queue(self, message: dict[str, Any]) -> None:
        self._outbox += json.dumps(message).encode() + b"\n"
        self._flush()

    def _flush(self) -> None:
        try:
            self._outbox = self._outbox[os.write(_STATUS, self._outbox) :]
        except BlockingIOError:
            return
        except OSError:
            # The worker is gone. The control pipe reports that too.
            self._outbox = b""

    def _send_last(self, message: dict[str, Any]) -> None:
        """Send the last message, and don't wait forever for a worker that is stopped."""
        self._queue(message)
        until = boottime() + _LAST_MESSAGE_WITHIN
        poll = select.poll()
        poll.register(_STATUS, select.POLLOUT)
        while self._outbox and boottime() < until:
            poll.poll(1000)
            self._flush()

    def _reap(self) -> None:
        """Reap the command and every orphan that has ended, so that no zombie remains."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if not pid:
                return
            if pid == self._command:
                self._status = status

    def _kill(self) -> int:
        """Kill all descendants, repeatedly, until none is left. Return how many had been left."""
        pause = 0.001
        self._reap()
        remaining = descendants(os.getpid())
        left_behind = sum(state != b"Z" for _, _, state in remaining.values())
        while remaining:
            send_signal(remaining, signal.SIGKILL)
            self._reap()
            remaining = descendants(os.getpid())
            if remaining:
                # A process in an uninterruptible system call ends later.
                time.sleep(pause)
                pause = min(pause * 2, 0.1)
                self._reap()
                remaining = descendants(os.getpid())
        return left_behind

    def _drain(self) -> None:
        """Read the rest of the output. All of its writers are dead."""
        for fd in list(self._readers):
            while self._read(fd):
                pass


class Refused(Exception):
    """The worker's configuration doesn't allow what the job asks for."""


def become(spec: dict[str, Any], streams: tuple[int, int, int]) -> NoReturn:
    """Turn this forked process into the command."""
    os.setsid()
    with suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, spec["nice"])
    with suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
        file.write(_OOM_SCORE)
    for number, limit in spec["limits"]:
        set_limit(number, limit)
    user, group = spec["user"], spec["group"]
    set_limit(resource.RLIMIT_NPROC, spec["process_limit"])
    if user != os.geteuid():
        os.setgroups(spec["groups"])
        os.setresgid(group, group, group)
        os.setresuid(user, user, user)
    # After the change of user, at which the kernel forgets this.
    prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    # A setuid program could become another user, whom the guard may not signal.
    prctl(_PR_SET_NO_NEW_PRIVS, 1)
    os.umask(spec["umask"])
    os.chdir(spec["cwd"])
    # Check where we are, not the name: a link in the path could have changed since.
    here = os.getcwd()
    if not any(here == one or here.startswith(one.rstrip("/") + "/") for one in spec["cwds"]):
        raise Refused(f"cwd must be inside a directory of the worker's configuration, got {here}")
    signal.set_wakeup_fd(-1)
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        with suppress(OSError, ValueError):
            signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    for fd, target in zip(streams, (0, 1, 2), strict=True):
        os.dup2(fd, target, inheritable=True)
    # All other descriptors are closed by exec.
    os.execve(spec["path"], spec["argv"], spec["env"])  # noqa: S606 - no shell, on purpose


def prctl(option: int, value: int) -> None:
    """Set an attribute of this process."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, value, 0, 0, 0):
        number = ctypes.get_errno()
        raise OSError(number, f"prctl({option}): {errno.errorcode.get(number, number)}")


def main() -> None:
    """Read the specification from the descriptor that the worker passed, and run the command."""
    worker, spec_fd, *others = map(int, sys.argv[1:])
    for fd in others:
        os.set_inheritable(fd, False)
        # The parent of a dead worker process releases its jobs when no guard has this lock.
        fcntl.lockf(fd, fcntl.LOCK_SH)
    with open(spec_fd, "rb") as file:
        file.seek(0)
        spec = json.load(file)
    prctl(_PR_SET_CHILD_SUBREAPER, 1)
    spec["nice"] = os.getpriority(os.PRIO_PROCESS, 0)
    guard = Guard(spec)
    prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() == worker:
        guard.run()


if __name__ == "__main__":
    main()
