"""A codec seals what jobs hold: the database never has it in clear, and only the codec opens it."""

import asyncio
import logging
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from support.canaries import columns_with
from support.processes import wait_for
from support.workers import Worker
from tenure import AsyncJob, Job, Retry, Tenure
from tenure.admin import By
from tenure.errors import CodecError, JobFailed, PayloadError
from tenure.testing import RunRecord
from tenure.testing import drain as strict_drain
from tests.app import sealed_jobs
from tests.app.acts import fetch, rows
from tests.app.sealed_jobs import KEY, AesGcm

CANARY = "zq9huntertwoxk4mpv7"


class Refusing:
    """A codec that opens everything and seals no field with this name."""

    def __init__(self, refused: str) -> None:
        self._refused = refused

    def seal(self, data: bytes, *, task: str, field: str) -> bytes:  # noqa: ARG002 - Codec
        if field == self._refused:
            raise RuntimeError(f"no key for {data!r}")
        return data[::-1]

    def open(self, data: bytes, *, task: str, field: str) -> bytes:  # noqa: ARG002 - Codec
        return data[::-1]


SEALED = AesGcm(KEY)


@pytest.fixture
def sealing(url: str) -> Iterator[Tenure]:
    app = Tenure(url, codec=SEALED)
    yield app
    app.close()


def drain(app: Tenure, *, limit: int = 1000) -> Sequence[RunRecord]:
    """Run all jobs, those that are retried too."""
    return strict_drain(app, fast_forward=3600, raise_errors=False, limit=limit).ran


def in_clear(url: str) -> set[tuple[str, str]]:
    return columns_with(url, CANARY)


def declare(app: Tenure) -> dict[str, Any]:
    """Tasks that write the canary wherever a handler can write."""

    @app.task(name="says")
    def says(word: str) -> dict[str, str]:
        return {"said": word}

    @app.task(name="reports", max_attempts=2)
    def reports(job: Job, word: str) -> str:
        logging.getLogger("shop").warning("log of %s", word)
        if job.attempt == 1:
            job.progress(cursor={"at": word}, items={"first": {"row": word}}, done=1)
            raise Retry(f"error about {word}", after=0)
        assert job.cursor == {"at": word}
        return word

    @app.task(name="commits")
    def commits(job: Job, word: str) -> list[str] | None:
        with job.transaction() as connection:
            job.complete(connection=connection, result=[word])
        return None

    @app.task(name="collects")
    def collects(job: Job, word: str) -> None:
        logging.getLogger("shop").warning("log of %s", word)
        job.enqueue(says.bind(word))
        job.progress(items={"only": word})

    @app.task(name="parent")
    async def parent(job: AsyncJob, word: str) -> str:
        job.enqueue(says.bind(word))
        return word

    @app.task(name="fails", max_attempts=1)
    def fails(word: str) -> None:
        logging.getLogger("shop").warning("log of %s", word)
        raise ValueError(f"error about {word}")

    tasks = (says, reports, commits, collects, parent, fails)
    return {task.name: task for task in tasks}


def test_nothing_that_a_handler_reads_or_writes_is_stored_in_clear(
    sealing: Tenure, url: str
) -> None:
    tasks = declare(sealing)
    says = tasks["says"]
    handles = [
        says.enqueue(CANARY),
        says.using(key="k", tags=["t"]).enqueue(word=CANARY),
        *sealing.enqueue_many(says.bind(CANARY) for _ in range(3)),
        *sealing.enqueue_many(
            [says.using(key="other").bind(CANARY), tasks["commits"].bind(CANARY)]
        ),
        tasks["reports"].enqueue(CANARY),
        tasks["parent"].enqueue(CANARY),
        tasks["fails"].enqueue(CANARY),
        tasks["collects"].using(target=1).enqueue(CANARY),
    ]
    assert in_clear(url) == set()
    drain(sealing)
    assert in_clear(url) == set()
    answer = {"said": CANARY}
    results: list[Any] = []
    for handle in handles:
        handle.wait(timeout=60)
        try:
            results.append(handle.result)
        except JobFailed as failed:
            results.append(str(failed))
    assert results[:6] == [answer] * 6
    assert results[6:9] == [[CANARY], CANARY, CANARY]
    assert f"ValueError: error about {CANARY}" in results[9]
    row = handles[0].get()
    assert row is not None
    assert row.args == {"word": CANARY}
    # The two follow-ups ran as well.
    [done] = fetch(url, "SELECT count(*) FROM tenure.job_archive WHERE task = 'says'")
    assert done["count"] == 8


async def test_async_code_and_workers_on_the_loop_seal_too(url: str) -> None:
    app = Tenure(url, codec=SEALED)
    tasks = declare(app)
    one = await tasks["says"].aenqueue(CANARY)
    [two] = await app.aenqueue_many([tasks["reports"].bind(CANARY)])
    async with app.run(queues=["default"], schedules=False):
        await asyncio.gather(one.wait_async(timeout=60), two.wait_async(timeout=60))
    assert (one.result, two.result) == ({"said": CANARY}, CANARY)
    assert in_clear(url) == set()
    await app.aclose()


def test_a_worker_seals_what_its_threads_processes_and_loop_write(url: str, tmp_path: Path) -> None:
    app = sealed_jobs.app
    with app.with_engine(Tenure(url, codec=SEALED).engine):
        tasks = sealed_jobs.in_thread, sealed_jobs.in_process, sealed_jobs.on_loop
        handles = [task.enqueue(CANARY) for task in tasks]
        with Worker("tests.app.sealed_jobs:app", url, tmp_path):
            results = [handle.wait(timeout=60).result for handle in handles]
            assert wait_for(lambda: rows(url) == [], 30), "a follow-up is left"
        app.close()
    again = f"{CANARY} again"
    assert results == [again, again, CANARY]
    assert in_clear(url) == set()


def test_an_error_is_grouped_by_its_type_and_shown_as_sealed(sealing: Tenure) -> None:
    fails = declare(sealing)["fails"]
    handle = fails.enqueue(CANARY)
    fails.enqueue("something else")
    drain(sealing)
    [group] = sealing.admin.jobs.failed_groups().groups
    assert (group.signature, group.count.value) == ("ValueError", 2)
    redactor = sealing.admin.settings.redactor()
    job = sealing.admin.jobs.get(handle.id)
    assert job is not None
    assert redactor.job(job).args == {"$sealed": "<sealed>"}
    [attempt] = sealing.admin.jobs.attempts(handle.id)
    shown = redactor.attempt(attempt, of=job)
    assert (shown.error_type, shown.error_message) == ("ValueError", "<sealed>")
    assert (shown.error_trace, shown.log) == ("<sealed>", "<sealed>")


def test_a_selector_by_an_argument_does_not_match_a_sealed_job(sealing: Tenure) -> None:
    handle = declare(sealing)["says"].enqueue(CANARY)
    assert sealing.admin.jobs.search(f"args.word:{CANARY}").jobs == []
    assert [job.id for job in sealing.admin.jobs.search("task:says").jobs] == [handle.id]


def test_jobs_that_are_not_sealed_run_too(sealing: Tenure, url: str) -> None:
    declare(sealing)
    plain = sealing.admin.jobs.enqueue("says", {"word": "plain"}, By("ops"))
    assert rows(url)[0]["args"] == {"word": "plain"}
    [run] = drain(sealing)
    assert (run.job.id, run.job.result) == (plain.id, {"said": "plain"})


def test_a_job_from_sql_is_stored_as_it_is_and_its_result_is_sealed(
    sealing: Tenure, url: str
) -> None:
    says = declare(sealing)["says"]
    [found] = fetch(url, """SELECT tenure.enqueue('says', '{"word": "plain"}') AS id""")
    assert rows(url)[0]["args"] == {"word": "plain"}
    [run] = drain(sealing)
    assert run.job.id == found["id"]
    assert says.handle(found["id"]).wait(timeout=60).result == {"said": "plain"}
    [stored] = fetch(url, "SELECT result FROM tenure.job_archive")
    assert list(stored["result"]) == ["$sealed"]


def test_a_job_from_sql_that_pretends_to_be_sealed_is_refused(sealing: Tenure, url: str) -> None:
    declare(sealing)
    fetch(url, """SELECT tenure.enqueue('says', '{"$sealed": "cGxhaW4="}', max_attempts => 1)""")
    [run] = drain(sealing)
    assert isinstance(run.error, CodecError)
    assert run.ending == "failed"


def test_an_app_without_the_codec_fails_the_attempt_and_the_next_one_runs(
    sealing: Tenure, url: str
) -> None:
    handle = declare(sealing)["says"].using(max_attempts=5).enqueue(CANARY)
    without = Tenure(url)
    elsewhere = declare(without)["says"].handle(handle.id)
    [run] = strict_drain(without, raise_errors=False).ran
    assert isinstance(run.error, CodecError)
    assert "this app has no codec; pass Tenure(codec=…)" in str(run.error)
    assert run.ending == "retrying"
    row = elsewhere.get()
    assert row is not None
    assert list(row.args) == ["$sealed"]
    drain(sealing)
    assert handle.wait(timeout=60).result == {"said": CANARY}
    with pytest.raises(CodecError, match="the result of a job of task says is sealed"):
        _ = elsewhere.wait(timeout=60).result
    without.close()


def test_the_first_key_seals_and_every_key_opens(url: str) -> None:
    old = Tenure(url, codec=AesGcm(KEY))
    new = Tenure(url, codec=AesGcm(bytes(32), KEY))
    only_new = Tenure(url, codec=AesGcm(bytes(32)))
    before = declare(old)["says"].enqueue(CANARY)
    after = declare(new)["says"].enqueue(CANARY)
    drain(new)
    with pytest.raises(CodecError, match="could not open the result of a job of task says"):
        before.get()
    says = declare(only_new)["says"]
    assert says.handle(after.id).wait(timeout=60).result == {"said": CANARY}
    with pytest.raises(CodecError, match="could not open the args of a job of task says"):
        says.handle(before.id).get()
    for app in (old, new, only_new):
        app.close()


@pytest.mark.parametrize("column", ["task", "args"])
def test_a_sealed_value_that_was_moved_is_refused(sealing: Tenure, url: str, column: str) -> None:
    tasks = declare(sealing)
    mine, other = tasks["says"].enqueue(CANARY), tasks["commits"].enqueue(CANARY)
    fetch(
        url,
        f"UPDATE tenure.job SET {column} = (SELECT {column} FROM tenure.job WHERE id = $1)"
        " WHERE id = $2",
        mine.id,
        other.id,
    )
    runs = {run.job.id: run for run in strict_drain(sealing, raise_errors=False).ran}
    assert isinstance(runs[other.id].error, CodecError)
    assert runs[mine.id].error is None


def test_an_enqueue_whose_arguments_cannot_be_sealed_stores_nothing(url: str) -> None:
    app = Tenure(url, codec=Refusing("args"))
    says = declare(app)["says"]
    with pytest.raises(CodecError, match="could not seal the args of a job of task says") as raised:
        says.enqueue(CANARY)
    assert CANARY not in str(raised.value)
    with pytest.raises(CodecError):
        app.enqueue_many([says.bind(CANARY)])
    assert rows(url) == []
    app.close()


@pytest.mark.parametrize("task", ["says", "parent"])
def test_a_result_that_cannot_be_sealed_fails_the_job_and_is_not_stored(
    url: str, task: str
) -> None:
    app = Tenure(url, codec=Refusing("result"))
    handle = declare(app)[task].enqueue(CANARY)
    drain(app)
    handle.wait(timeout=60)
    assert (handle.state, handle.done_reason) == ("failed", "unstorable")
    assert in_clear(url) == set()
    app.close()


def test_a_transaction_whose_result_cannot_be_sealed_is_rolled_back(url: str) -> None:
    app = Tenure(url, codec=Refusing("result"))
    declare(app)["commits"].using(max_attempts=1).enqueue(CANARY)
    [run] = drain(app)
    assert isinstance(run.error, CodecError)
    assert in_clear(url) == set()
    app.close()


@pytest.mark.parametrize("field", ["error", "log"])
def test_a_text_that_cannot_be_sealed_is_left_out(url: str, field: str) -> None:
    app = Tenure(url, codec=Refusing(field))
    handle = declare(app)["fails"].enqueue(CANARY)
    drain(app)
    [attempt] = app.admin.jobs.attempts(handle.id)
    text = attempt.log if field == "log" else attempt.error_message
    assert text == "(the codec could not seal this text)"
    assert attempt.error_type == "ValueError"
    assert in_clear(url) == set()
    app.close()


def test_limits_apply_to_the_sealed_form(sealing: Tenure, url: str) -> None:
    says = declare(sealing)["says"]
    with pytest.raises(PayloadError, match="at most 262,144 bytes"):
        says.enqueue("x" * 200_000)
    handle = says.enqueue("x" * 50_000)
    drain(sealing)
    handle.wait(timeout=60)
    assert (handle.state, handle.done_reason) == ("failed", "unstorable")
    assert in_clear(url) == set()


def test_long_texts_are_cut_before_they_are_sealed(sealing: Tenure) -> None:
    @sealing.task(name="long", max_attempts=1)
    def long() -> None:
        logging.getLogger("shop").warning("ä%s", "lo" * 20_000)
        raise ValueError("ä" * 50_000)

    handle = long.enqueue()
    drain(sealing)
    with pytest.raises(JobFailed) as failed:
        _ = handle.wait(timeout=60).result
    assert failed.value.error is not None
    assert failed.value.error.message.startswith("ä" * 1000)
    [attempt] = sealing.admin.jobs.attempts(handle.id)
    opened = sealing.engine.sealing.open_attempt(attempt, task="long")
    assert opened.log is not None
    assert opened.log.endswith("lo" * 5000)
    assert opened.error_trace is not None


def test_new_arguments_are_sealed_by_the_program_with_the_codec(sealing: Tenure, url: str) -> None:
    """In the job, the dead letter, the new job and the audit log."""
    tasks = declare(sealing)
    by, jobs = By("ops"), sealing.admin.jobs
    queued = tasks["says"].using(delay=3600).enqueue("a")
    done, dead = tasks["says"].enqueue("b"), tasks["fails"].enqueue("c")
    strict_drain(sealing, raise_errors=False)
    args = {"word": CANARY}

    assert jobs.edit([queued.id], by, args=args) == ["edited"]
    assert jobs.edit([dead.id], by, args=args) == ["edited"]
    [again] = jobs.rerun([done.id], by, args=args)
    [copy] = jobs.rerun([done.id], by)
    [retried] = jobs.retry([dead.id], by, args={"word": f"{CANARY} again"})

    assert retried.answer == "retried"
    assert again.job is not None
    assert copy.job is not None
    assert in_clear(url) == set()
    stored = sealing.admin.audit.list(f"job:{queued.id}", count=1)[0]
    assert stored.after == {"args": {"$sealed": "<sealed>"}}
    drain(sealing)
    handle = tasks["says"].handle
    results = [one.wait(timeout=60).result for one in (handle(again.job), handle(copy.job), queued)]
    assert results == [{"said": CANARY}, {"said": "b"}, {"said": CANARY}]


def test_a_program_without_the_codec_cannot_replace_sealed_arguments(
    sealing: Tenure, url: str
) -> None:
    job = declare(sealing)["says"].enqueue(CANARY)
    plain = Tenure(url)
    edited = plain.admin.jobs.edit([job.id], By("ops"), args={"word": "b"})
    assert edited == ["sealed"]
    assert plain.admin.jobs.edit([job.id], By("ops"), priority=9) == ["edited"]
    plain.close()
    drain(sealing)
    assert job.wait(timeout=60).result == {"said": CANARY}
