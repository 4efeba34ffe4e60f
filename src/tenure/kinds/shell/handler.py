"""Run one command for a job, under a guard process."""

import contextlib
import json
import os
import signal
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tenure._model.ids import Json
from tenure._model.outcome import GiveUp
from tenure._rules.sanitize import MAX_LOG
from tenure._rules.secret_text import HIDDEN, pattern_of
from tenure.errors import InvalidValue, LeaseLost, StoreError
from tenure.job import AsyncJob, lease_state_of
from tenure.kinds.settings import secret
from tenure.kinds.shell import configuration
from tenure.kinds.shell.arguments import check
from tenure.kinds.shell.configuration import ShellSettings
from tenure.kinds.shell.guard_process import GuardProcess, Progress

if TYPE_CHECKING:
    import re

# With its other fields, a result of this size is below the limit of results.
_LARGEST_STDOUT = 56 * 1024
_LONGEST_REASON = 400
# The share of `stop_within` that the command gets between SIGTERM and SIGKILL. The rest is for the
# guard and the worker, which ends its own process at 0.8 of it if a lease is at risk.
_GRACE = 0.6
_EX_TEMPFAIL = 75
_EX_USAGE, _EX_CONFIG = 64, 78
_SHORTEST_LINE = 8


class CommandFailed(Exception):
    """The command failed, and its job is retried."""


async def handler(
    job: AsyncJob,
    argv: list[str],
    cwd: str | None = None,
    stdin: str | None = None,
    env: dict[str, Any] | None = None,
) -> dict[str, Json]:
    """Run a command and return its exit code, the end of its output, and how long it took.

    Args:
        job: The running job.
        argv: The executable and its arguments.
        cwd: The directory to start in.
        stdin: The command's input.
        env: More environment variables.

    Returns:
        `exit_code`, `stdout` and `seconds`.

    Raises:
        CommandFailed: The command failed, and the job is retried.
        GiveUp: The command failed permanently, or this worker doesn't allow it.
    """
    try:
        check({"argv": list(argv), "cwd": cwd, "stdin": stdin, "env": env})
    except InvalidValue as error:
        raise GiveUp(str(error)) from error
    settings = configuration.load()
    environment, hidden = _environment(job, settings, env or {})
    state = lease_state_of(job)
    grace = _GRACE * state.stop_within
    spec = _spec(settings, argv, cwd, stdin, slack=max(map(len, hidden), default=0) * 4)
    redaction = _Redaction(hidden)
    running = GuardProcess({**spec, "stop_at": state.trusted_until, "grace": grace}, environment)
    last: dict[str, Any] | None = None
    try:
        with state.followed_by(running.extend):
            last = await _follow(job, running, redaction)
    except BaseException:
        last = await running.end(grace)
        raise
    finally:
        running.close()
        if last is not None and "ended" in last:
            state.show_output(redaction.tail(last["ended"]["log"], last["ended"]["log_size"]))
    return _judge(job, settings, argv[0], last, redaction)


async def _follow(job: AsyncJob, running: GuardProcess, redaction: "_Redaction") -> dict[str, Any]:
    """Report the command's progress until it ends. Return the last report."""
    while isinstance(report := await running.next_report(), Progress):
        lease_state_of(job).show_output(redaction.tail(report.log, report.log_size))
        # Without the database, progress waits for the next line. The lease decides the rest.
        with contextlib.suppress(StoreError):
            message = None if report.message is None else redaction.hide(report.message)
            await job.progress(done=report.done, total=report.total, message=message)
    return report


def _environment(
    job: AsyncJob, settings: ShellSettings, env: Mapping[str, Json]
) -> tuple[dict[str, str], Sequence[str]]:
    """Return the command's variables, and the secrets among them."""
    environment, hidden = settings.base_environment(), list[str]()
    for name, value in env.items():
        settings.check_variable(name, value)
        if isinstance(value, dict):
            secrets = secret(str(value["secret"]))
            environment[name] = secrets[0]
            hidden += secrets
        else:
            environment[name] = str(value)
    environment |= {
        "TENURE_JOB_ID": str(job.id),
        "TENURE_ATTEMPT": str(job.attempt),
        "TENURE_FENCE": str(job.fence),
        "TENURE_IDEMPOTENCY_KEY": job.idempotency_key,
    }
    return environment, hidden


def _spec(
    settings: ShellSettings, argv: Sequence[str], cwd: str | None, stdin: str | None, *, slack: int
) -> dict[str, Any]:
    path = settings.executable(argv[0])
    directory = settings.directory(cwd)
    command = settings.wrapped([path, *argv[1:]], directory)
    user, group, groups = settings.account()
    return {
        "path": command[0],
        "argv": command,
        "cwd": directory,
        "cwds": settings.directories(),
        "stdin": stdin,
        "umask": settings.umask,
        "user": user,
        "group": group,
        "groups": list(groups),
        "limits": settings.limits(),
        "processes": settings.processes,
        "sandbox": settings.sandbox is not None,
        # A secret that was cut in half must be dropped, so the guard keeps a little more.
        "log_limit": MAX_LOG + slack,
        "stdout_limit": _LARGEST_STDOUT + slack,
    }


class _Redaction:
    """Hides the values of this job's secrets."""

    def __init__(self, secrets: Sequence[str]) -> None:
        lines = [line for value in secrets for line in value.split() if len(line) >= _SHORTEST_LINE]
        values = {value for value in (*secrets, *lines) if value}
        self._pattern: re.Pattern[str] | None = pattern_of(sorted(values))
        self._longest = max(map(len, values), default=0)

    def hide(self, text: str) -> str:
        return text if self._pattern is None else self._pattern.sub(HIDDEN, text)

    def tail(self, text: str, size: int) -> str:
        """Return the text without secrets. If its start was cut, drop what may be half of one."""
        is_cut = len(text.encode(errors="replace")) < size
        text = self.hide(text)
        return text[self._longest :] if is_cut else text


def _judge(
    job: AsyncJob,
    settings: ShellSettings,
    program: str,
    last: Mapping[str, Any],
    redaction: _Redaction,
) -> dict[str, Json]:
    """Return the result, or raise what the command's end means for the job."""
    name = os.path.basename(program)  # noqa: PTH119 - a name, not a file
    if "failed" in last:
        failure = last["failed"]
        if failure["error"]:
            raise GiveUp(failure["error"])
        raise CommandFailed(f"{name} could not be started: {failure['text']}")
    ended = last["ended"]
    if ended["reason"] == "lease":
        raise LeaseLost(f"job {job.id}: the lease could not be renewed, so {name} was killed")
    if ended["reason"] == "processes":
        raise GiveUp(
            f"{name} was killed: it started more than {settings.processes} processes; raise "
            "processes in [kinds.shell] of the worker's tenure.toml if it needs more"
        )
    code = os.waitstatus_to_exitcode(ended["status"])
    if settings.sandbox is not None and code > 128:
        # bubblewrap reports a signal as an exit code.
        code = 128 - code
    if not code:
        stdout = _fit(redaction.tail(ended["stdout"], ended["stdout_size"]))
        return {"exit_code": 0, "stdout": stdout, "seconds": round(ended["seconds"], 3)}
    reason = f"{name} {_describe(code, settings)}{_last_line(redaction, ended)}"
    if _EX_USAGE <= code <= _EX_CONFIG and code != _EX_TEMPFAIL:
        raise GiveUp(reason)
    raise CommandFailed(reason)


def _describe(code: int, settings: ShellSettings) -> str:
    if code > 0:
        return f"exited with code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    if -code == signal.SIGXCPU or (-code == signal.SIGKILL and settings.cpu is not None):
        return f"was killed by {name} (limit of processor time: {settings.cpu} s)"
    if -code == signal.SIGXFSZ:
        return f"was killed by {name} (limit of file size: {settings.file_size} bytes)"
    return f"was killed by {name}"


def _last_line(redaction: _Redaction, ended: Mapping[str, Any]) -> str:
    """Return the last line of the output, which usually says why."""
    lines = redaction.tail(ended["log"], ended["log_size"]).split("\n")
    last = next((line.strip() for line in reversed(lines) if line.strip()), "")
    return f": {last[:_LONGEST_REASON]}" if last else ""


def _fit(text: str) -> str:
    """Return the end of the text that fits into a result."""
    while len(json.dumps(text, ensure_ascii=False).encode(errors="replace")) > _LARGEST_STDOUT:
        text = text[len(text) // 8 + 1 :]
    return text
