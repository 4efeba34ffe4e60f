"""Commands as jobs: how they run, how they end, and what is kept of them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tenure._model.attempt import AttemptOutcome
from tenure._model.job import State
from tests.kinds.shell_acts import PYTHON, configure, python, run

if TYPE_CHECKING:
    from pathlib import Path

    from support.store import Database


@pytest.fixture(autouse=True)
def shell(monkeypatch: pytest.MonkeyPatch) -> None:
    configure(monkeypatch)


async def test_command_runs_and_its_result_is_kept(db: Database) -> None:
    job, attempt = await python(db, "import sys; print('out'); print('err', file=sys.stderr)")
    assert job.state is State.COMPLETED
    assert job.result["exit_code"] == 0
    assert job.result["stdout"] == "out\n"
    assert 0 < job.result["seconds"] < 30
    assert {"out", "err"} <= set((attempt.log or "").split())


async def test_command_gets_its_arguments_unchanged(db: Database) -> None:
    words = ["a b", "$HOME", "*", "; rm -rf /", "`id`", '"', "'", "ä\n", ""]
    code = "import sys, json; print(json.dumps(sys.argv[1:]))"
    job, _ = await run(db, [PYTHON, "-I", "-c", code, *words])
    assert json.loads(job.result["stdout"]) == words


async def test_command_reads_its_input(db: Database) -> None:
    text = "größer\n" * 20_000
    job, _ = await python(db, "import sys; print(len(sys.stdin.read()))", stdin=text)
    assert job.result["stdout"].strip() == str(len(text))


async def test_unread_input_is_dropped(db: Database) -> None:
    job, _ = await python(db, "print('done')", stdin="x" * 200_000)
    assert job.state is State.COMPLETED


async def test_environment_has_only_what_is_allowed(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    configure(monkeypatch, env=["LANG", "COLOR", "ABSENT"])
    monkeypatch.setenv("LANG", "C.UTF-8")
    monkeypatch.setenv("SHOP_PASSWORD", "hunter2")
    code = "import os, json; print(json.dumps(dict(os.environ)))"
    job, _ = await python(db, code, env={"COLOR": "red"})
    environment = json.loads(job.result["stdout"])
    assert environment.pop("TENURE_IDEMPOTENCY_KEY")
    # Python sets this one by itself in the C locale.
    environment.pop("LC_CTYPE", None)
    assert environment == {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "LANG": "C.UTF-8",
        "COLOR": "red",
        "TENURE_JOB_ID": str(job.id),
        "TENURE_ATTEMPT": "1",
        "TENURE_FENCE": environment["TENURE_FENCE"],
    }
    assert int(environment["TENURE_FENCE"]) > 0


async def test_command_gets_no_descriptor_of_the_worker(db: Database) -> None:
    code = "import os; print(sorted(os.listdir('/proc/self/fd'))[:-1], os.read(0, 1))"
    job, _ = await python(db, code)
    assert job.result["stdout"].strip() == "['0', '1', '2'] b''"


async def test_secret_is_passed_by_name_and_hidden_everywhere(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    value = "correct-horse-battery"
    configure(monkeypatch, env=["PGPASSWORD"], secrets=["shop_db"])
    monkeypatch.setenv("TENURE_SECRET_SHOP_DB", f"{value} older-horse-battery")
    code = (
        "import os, sys; word = os.environ['PGPASSWORD']; assert len(word) == 21; "
        "print('::progress 1/2', word, flush=True); print('older-horse-battery'); sys.exit(word)"
    )
    job, attempt = await python(db, code, env={"PGPASSWORD": {"secret": "shop_db"}})
    assert job.state is State.FAILED
    rows = await db.fetch(
        "SELECT j::text FROM tenure.job_archive j UNION ALL SELECT a::text FROM tenure.attempt a"
    )
    assert not [row for row in rows if "horse" in str(row)]
    assert "<redacted>" in (attempt.log or "")
    assert attempt.error_message == "python exited with code 1: <redacted>"


async def test_cut_secret_is_dropped(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = "0123456789" * 20
    configure(monkeypatch, env=["API_KEY"], secrets=["api"])
    monkeypatch.setenv("TENURE_SECRET_API", secret)
    code = (
        "import os; print((os.environ['API_KEY'] + '\\n') * 2000, end='');"
        "print('x' * 101 + '\\n' + os.environ['API_KEY'])"
    )
    job, attempt = await python(db, code, env={"API_KEY": {"secret": "api"}})
    assert "0123456789" not in job.result["stdout"]
    assert "0123456789" not in (attempt.log or "")


@pytest.mark.parametrize(
    ("code", "retryable"),
    [
        *((1, True), (2, True), (63, True), (64, False), (74, False), (75, True), (76, False)),
        *((78, False), (79, True), (127, True), (255, True)),
    ],
)
async def test_exit_code_decides_about_a_retry(db: Database, code: int, retryable: bool) -> None:
    job, attempt = await python(
        db, f"import sys; print('why'); sys.exit({code})", using={"max_attempts": 1}
    )
    assert job.state is State.FAILED
    assert attempt.outcome is AttemptOutcome.FAILED
    assert attempt.error_message == f"python exited with code {code}: why"
    assert attempt.error_type == ("CommandFailed" if retryable else "GiveUp")
    assert job.done_reason == ("attempts" if retryable else "gave_up")


async def test_signal_is_named(db: Database) -> None:
    _, attempt = await python(db, "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)")
    assert attempt.error_message == "python was killed by SIGSEGV"


async def test_progress_lines_are_reported(db: Database) -> None:
    code = (
        "import time\n"
        "for n in range(1, 2001): print(f'::progress {n}/2000 page {n}', flush=True)\n"
        "time.sleep(0.6)"
    )
    job, _ = await python(db, code)
    assert {"done": 2000, "total": 2000, "message": "page 2000"}.items() <= job.progress.items()


async def test_working_directory_is_inside_an_allowed_one(
    db: Database, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    (inside / "deep").mkdir(parents=True)
    outside.mkdir()
    (inside / "link").symlink_to(outside)
    configure(monkeypatch, cwd=[str(inside)])
    code = "import os; print(os.getcwd())"
    for cwd in (None, str(inside), str(inside / "deep")):
        job, _ = await python(db, code, cwd=cwd)
        assert job.result["stdout"].strip() == (cwd or str(inside))
    for cwd in ("/", str(outside), str(inside / "link"), f"{inside}/../outside"):
        job, attempt = await python(db, code, cwd=cwd)
        assert (job.state, job.done_reason) == (State.FAILED, "gave_up")
        assert "cwd must be inside a directory" in (attempt.error_message or "")


async def test_program_that_is_not_allowed_is_refused(
    db: Database, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for program in ("/bin/true", "true", f"{PYTHON}/", f"/..{PYTHON}", PYTHON.replace("/", "//")):
        job, attempt = await run(db, [program])
        assert (job.state, job.done_reason) == (State.FAILED, "gave_up")
        assert "must be an executable that this worker allows" in (attempt.error_message or "")


async def test_program_is_found_by_its_name(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    configure(monkeypatch, allow=["/bin/true", "/bin/echo", "/usr/bin/echo"])
    job, _ = await run(db, ["true"])
    assert job.state is State.COMPLETED
    job, attempt = await run(db, ["echo"])
    assert job.done_reason == "gave_up"
    assert "must be unambiguous" in (attempt.error_message or "")
    job, _ = await run(db, ["/bin/echo", "hello"])
    assert job.result["stdout"] == "hello\n"


async def test_variable_and_secret_that_are_not_allowed_are_refused(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, attempt = await python(db, "", env={"COLOR": "red"})
    assert "env must have names that this worker allows, got 'COLOR'" in (
        attempt.error_message or ""
    )
    configure(monkeypatch, env=["PGPASSWORD"], secrets=["other"])
    monkeypatch.setenv("TENURE_SECRET_SHOP_DB", "x")
    _, attempt = await python(db, "", env={"PGPASSWORD": {"secret": "shop_db"}})
    assert "must name a secret that commands on this worker may use" in (
        attempt.error_message or ""
    )


async def test_program_that_cannot_start_is_retried(
    db: Database, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    script = tmp_path / "script"
    script.write_text("#!/no/such/interpreter\n")
    script.chmod(0o755)
    configure(monkeypatch, allow=[str(script)])
    job, attempt = await run(db, [str(script)])
    assert job.done_reason == "attempts"
    assert (attempt.error_message or "").startswith(
        "script could not be started: FileNotFoundError"
    )


async def test_files_are_created_with_the_mask(
    db: Database, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    configure(monkeypatch, cwd=[str(tmp_path)])
    await python(db, "open('a', 'w')")
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o600
    configure(monkeypatch, cwd=[str(tmp_path)], umask="022")
    await python(db, "open('b', 'w')")
    assert (tmp_path / "b").stat().st_mode & 0o777 == 0o644


async def test_timeout_ends_the_command(db: Database) -> None:
    code = "import time; print('begun', flush=True); time.sleep(60)"
    job, attempt = await python(db, code, timeout=3)
    assert job.state is State.FAILED
    assert attempt.outcome is AttemptOutcome.TIMED_OUT
    assert "begun" in (attempt.log or "")
