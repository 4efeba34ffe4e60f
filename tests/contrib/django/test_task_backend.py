"""The backend for Django's task framework: what the framework expects of any, and what it gets
beyond that."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from asgiref.sync import async_to_sync
from django.db import transaction
from django.test import override_settings
from django.utils import timezone
from django_tasks import TaskResultStatus, default_task_backend, task_backends
from django_tasks.exceptions import InvalidTaskError, TaskResultDoesNotExist, TaskResultMismatch
from django_tasks.signals import task_enqueued, task_finished, task_started

from tenure._rules.sealing import Sealing
from tenure.admin import By
from tenure.contrib.django import app
from tenure.contrib.django.task_runner import class_path
from tenure.contrib.django.tasks import OPTIONS, TenureBackend
from tests.contrib.django import sample
from tests.contrib.django.acts import seen, work
from tests.contrib.django.sample import aadd, add, note, odd, refuse, retry_once, tell

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.usefixtures("project")


class Backwards:
    """A codec that seals nothing well."""

    def seal(self, data: bytes, *, task: str, field: str) -> bytes:  # noqa: ARG002 - Codec
        return data[::-1]

    def open(self, data: bytes, *, task: str, field: str) -> bytes:  # noqa: ARG002 - Codec
        return data[::-1]


@pytest.fixture
def heard() -> Iterator[list[tuple[str, str, str]]]:
    """What the framework's signals told: which, of which result, in which status."""
    events: list[tuple[str, str, str]] = []
    named = {"enqueued": task_enqueued, "started": task_started, "finished": task_finished}
    receivers = []
    for name, signal in named.items():

        def hear(*, task_result: Any, name: str = name, **_other: Any) -> None:
            events.append((name, task_result.id, task_result.status))

        signal.connect(hear, sender=TenureBackend)
        receivers.append((signal, hear))
    yield events
    for signal, hear in receivers:
        signal.disconnect(hear, sender=TenureBackend)


def test_it_says_what_it_can() -> None:
    backend = default_task_backend
    assert isinstance(task_backends["default"], TenureBackend)
    assert backend.supports_defer
    assert backend.supports_async_task
    assert backend.supports_get_result
    assert backend.supports_priority


@pytest.mark.parametrize("task", [add, aadd])
def test_a_result_is_ready_before_it_is_run(task: Any) -> None:
    result = task.enqueue(1, right=2)
    assert result.status == TaskResultStatus.READY
    assert result.task == task
    assert (result.args, result.kwargs, result.attempts) == ([1], {"right": 2}, 0)
    assert (result.started_at, result.finished_at) == (None, None)
    with pytest.raises(ValueError, match="not finished"):
        _ = result.return_value


def test_a_sealed_result_is_opened(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app.engine, "sealing", Sealing(Backwards()))
    result = add.enqueue(1, right=2)
    job = app.admin.jobs.get(int(result.id))
    assert job is not None
    assert list(job.args) == ["$sealed"]
    work(app, url)
    result.refresh()
    assert (result.args, result.kwargs, result.return_value) == ([1], {"right": 2}, 3)


@pytest.mark.parametrize("task", [add, aadd])
def test_a_result_is_found_again_and_equals_the_first(task: Any) -> None:
    result = task.using(priority=77, run_after=timezone.now() + timedelta(hours=1)).enqueue(1)
    found = default_task_backend.get_result(result.id)
    assert abs(found.enqueued_at - result.enqueued_at) < timedelta(minutes=1)
    result.refresh()
    assert found == result
    assert async_to_sync(task.aget_result)(result.id) == result


def test_a_task_is_run_and_its_result_read(url: str) -> None:
    results: list[Any] = [add.enqueue(1, right=2), async_to_sync(aadd.aenqueue)(3, right=4)]
    work(app, url)
    for result, returned in zip(results, (3, 7), strict=True):
        result.refresh()
        assert result.status == TaskResultStatus.SUCCESSFUL
        assert result.return_value == returned
        assert result.enqueued_at <= result.started_at <= result.finished_at
        assert (result.attempts, result.errors) == (1, [])
    async_to_sync(results[0].arefresh)()


def test_a_result_belongs_to_its_transaction(url: str) -> None:
    """Shows R20."""
    with transaction.atomic():
        result = add.enqueue(1)
        assert default_task_backend.get_result(result.id).status == TaskResultStatus.READY
        assert seen(url) == []
        transaction.set_rollback(True)
    with pytest.raises(TaskResultDoesNotExist):
        result.refresh()


@pytest.mark.parametrize("missing", ["99", "0", "-1", "¹", "a8098c1a", "", str(2**63)])
def test_missing_result_is_reported(missing: str) -> None:
    with pytest.raises(TaskResultDoesNotExist):
        default_task_backend.get_result(missing)
    with pytest.raises(TaskResultDoesNotExist):
        async_to_sync(default_task_backend.aget_result)(missing)


def test_job_of_another_kind_is_not_in_the_results() -> None:
    with pytest.raises(TaskResultDoesNotExist):
        default_task_backend.get_result(str(note.enqueue().id))
    with pytest.raises(TaskResultMismatch):
        refuse.get_result(add.enqueue(1).id)


def test_a_task_that_fails_for_good_tells_its_errors(url: str) -> None:
    result = refuse.enqueue("no")
    _allow_attempts(url, 1)
    work(app, url)
    result.refresh()
    assert result.status == TaskResultStatus.FAILED
    [error] = result.errors
    assert error.exception_class is sample.Refused
    assert "Refused: no" in error.traceback
    with pytest.raises(ValueError, match="failed"):
        _ = result.return_value


def test_a_task_is_tried_again_and_its_context_knows(url: str) -> None:
    result = tell.enqueue(3)
    again = retry_once.enqueue()
    work(app, url)
    result.refresh()
    again.refresh()
    assert result.return_value == [3, result.id, "RUNNING", 2, "tell"]
    assert (result.attempts, len(result.errors), len(set(result.worker_ids))) == (3, 2, 1)
    assert (again.return_value, again.attempts) == (2, 2)


def test_what_cannot_be_kept_fails_at_once(url: str) -> None:
    result = odd.enqueue()
    work(app, url)
    result.refresh()
    assert result.status == TaskResultStatus.FAILED
    assert result.attempts == 1
    assert issubclass(result.errors[0].exception_class, TypeError)
    with pytest.raises(TypeError):
        add.enqueue(object())  # type: ignore[arg-type]  # What the editor would refuse too.


def test_a_cancelled_job_is_a_failed_task() -> None:
    result = add.enqueue(1)
    app.admin.jobs.cancel([int(result.id)], By("a test"))
    result.refresh()
    assert result.status == TaskResultStatus.FAILED
    assert result.is_finished


def test_signals_tell_of_each_step(heard: list[tuple[str, str, str]], url: str) -> None:
    first, second, third = add.enqueue(1), retry_once.enqueue(), aadd.enqueue(1)
    work(app, url, concurrency=1)
    assert heard[:3] == [("enqueued", each.id, "READY") for each in (first, second, third)]

    def of(result: Any) -> list[tuple[str, str]]:
        return [(name, status) for name, of_id, status in heard[3:] if of_id == result.id]

    ran = [("started", "RUNNING"), ("finished", "SUCCESSFUL")]
    assert of(first) == ran
    assert of(third) == ran
    assert of(second) == [("started", "RUNNING"), *ran], "what is tried again has not finished"


def test_end_of_a_failed_task_is_reported_once(heard: list[tuple[str, str, str]], url: str) -> None:
    result = refuse.enqueue("no")
    _allow_attempts(url, 1)
    work(app, url)
    assert heard[1:] == [("started", result.id, "RUNNING"), ("finished", result.id, "FAILED")]


def test_a_receivers_error_fails_no_task(url: str) -> None:
    def stumble(**_signal: Any) -> None:
        raise RuntimeError("a receiver's own")

    task_finished.connect(stumble)
    try:
        result = add.enqueue(1)
        work(app, url)
    finally:
        task_finished.disconnect(stumble)
    result.refresh()
    assert (result.status, result.attempts) == (TaskResultStatus.SUCCESSFUL, 1)


def test_a_task_runs_after_its_time_and_not_before(url: str) -> None:
    later = timezone.now() + timedelta(hours=1)
    add.using(run_after=later).enqueue(1)
    [due] = seen(url, "SELECT run_at FROM tenure.job")
    assert due == later
    with pytest.raises(InvalidTaskError, match="aware"):
        add.using(run_after=later.replace(tzinfo=None))


def test_without_time_zones_instants_are_those_of_the_project(url: str) -> None:
    with override_settings(USE_TZ=False, TIME_ZONE="Europe/Berlin"):
        later = timezone.now() + timedelta(hours=1)
        result: Any = add.using(run_after=later).enqueue(1)
        result.refresh()
        assert result.task.run_after == later
        assert timezone.is_naive(result.enqueued_at)
        [due] = seen(url, "SELECT run_at FROM tenure.job")
        assert timezone.make_naive(due) == later


def test_a_job_from_a_queue_that_the_settings_no_longer_have_is_run_and_read(url: str) -> None:
    result = add.enqueue(1)
    seen(url, "UPDATE tenure.job SET queue = 'former' RETURNING id")
    work(app, url)
    result.refresh()
    assert result.status == TaskResultStatus.SUCCESSFUL


def test_a_queue_must_be_one_of_the_backends() -> None:
    assert add.using(queue_name="mail").enqueue(1).task.queue_name == "mail"
    with pytest.raises(InvalidTaskError, match="'other'"):
        add.using(queue_name="other")


def test_a_priority_arrives(url: str) -> None:
    add.using(priority=100).enqueue(1)
    add.using(priority=-100).enqueue(1)
    assert seen(url, "SELECT priority FROM tenure.job ORDER BY id") == [9, 0]


def test_a_task_is_declared_once_whatever_thread_uses_it() -> None:
    names = list(app.tasks.names)
    errors: list[BaseException] = []

    def use() -> None:
        try:
            add.using(priority=3)
            task_backends["default"].validate_task(add)
        except BaseException as error:  # noqa: BLE001 - told below
            errors.append(error)

    threads = [threading.Thread(target=use) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert list(app.tasks.names) == names


def test_the_settings_are_checked() -> None:
    assert list(default_task_backend.check()) == []
    [error] = TenureBackend("other", {"OPTIONS": {"max_atempts": 3}}).check()
    assert (error.id, "max_attempts" in str(error.hint)) == ("tenure.E007", True)
    assert {"max_attempts", "timeout", "backoff", "give_up_on"} <= OPTIONS


def test_the_options_of_a_backend_hold_for_its_tasks(url: str) -> None:
    add.enqueue(1)
    assert seen(url, "SELECT max_attempts FROM tenure.job") == [5]


@pytest.mark.parametrize(
    ("kind", "trace", "path"),
    [
        ("ValueError", "Traceback …\nValueError: no", "builtins.ValueError"),
        ("Refused", "Traceback …\nshop.errors.Refused: no\nmore", "shop.errors.Refused"),
        ("Refused", "a.Refused: x\n\nDuring handling …\n\nb.c.Refused", "b.c.Refused"),
        ("Outer.Inner", "shop.Outer.Inner", "shop.Outer.Inner"),
        ("Gone", "cut off", "builtins.Exception"),
        ("", "", "builtins.Exception"),
    ],
)
def test_an_errors_class_is_read_from_its_trace(kind: str, trace: str, path: str) -> None:
    assert class_path(kind, trace) == path


def _allow_attempts(url: str, attempts: int) -> None:
    seen(url, f"UPDATE tenure.job SET max_attempts = {attempts} RETURNING id")


def test_a_worker_serves_the_queues_that_only_the_settings_name() -> None:
    queues = ["default", "mail", "seldom"]
    values = {"BACKEND": "tenure.contrib.django.tasks.TenureBackend", "QUEUES": queues}
    assert "seldom" not in app.tasks.queues
    with override_settings(TASKS={"default": values}):
        app.load_tasks()
    assert "seldom" in app.tasks.queues
