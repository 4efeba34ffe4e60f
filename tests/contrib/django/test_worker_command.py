"""`manage.py tenure_worker` with real processes: what it finds, and what it survives."""

from __future__ import annotations

import os
import signal
import sys
from typing import TYPE_CHECKING, Any

import pytest

from support.django_project import SHOP
from support.workers import soon
from tests.contrib.django.acts import seen

if TYPE_CHECKING:
    from pathlib import Path

    from support.django_project import Shop

SETTINGS = """
from project.settings import *

INSTALLED_APPS = [*INSTALLED_APPS, "extra"]
TENURE = {"IMPORTS": ["extra.more"]}
"""
TASKS = """
import time
from pathlib import Path

from django_tasks import task
from shop.models import Order
from tenure import Job
from tenure.contrib.django import app


@app.task(process=True)
def apart() -> int:
    return Order.objects.count()


@app.task
async def on_loop() -> int:
    return await Order.objects.acount()


@task
def wait_for(path: str) -> str:
    while not Path(path).exists():
        time.sleep(0.05)
    return "seen"
"""
MORE = """
from tenure.contrib.django import app


@app.task
def elsewhere() -> str:
    return "found"
"""
CALLS = """
import django

django.setup()
from extra.more import elsewhere
from extra.tasks import apart, on_loop

for task in (apart, on_loop, elsewhere):
    task.enqueue()
"""
ENDED = "SELECT task || ' ' || state || ' ' || result FROM tenure.job_archive ORDER BY 1"
EXTRA = {"DJANGO_SETTINGS_MODULE": "extra_settings"}


@pytest.fixture
def extra(shop: Shop, tmp_path: Path) -> Path:
    """A directory with one more app, and with settings that have it."""
    directory = tmp_path / "more"
    (directory / "extra").mkdir(parents=True)
    (directory / "extra" / "__init__.py").touch()
    (directory / "extra" / "tasks.py").write_text(TASKS)
    (directory / "extra" / "more.py").write_text(MORE)
    (directory / "extra_settings.py").write_text(SETTINGS)
    return directory


def call(shop: Shop, extra: Path, program: str) -> str:
    """What a program prints that has the project and the extra app."""
    environment = EXTRA | {"PYTHONPATH": f"{extra}{os.pathsep}{SHOP}"}
    ended = shop.run([sys.executable, "-c", program], environment)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.strip()


@pytest.mark.timeout(300)
def test_tasks_of_every_kind_are_found_in_every_process(shop: Shop, extra: Path) -> None:
    """From another directory, with settings and a path that only the command line names."""
    call(shop, extra, CALLS)
    manage = [sys.executable, str(SHOP / "manage.py"), "tenure_worker", "--drain"]
    words = ["--settings=extra_settings", f"--pythonpath={extra}"]
    worked = shop.run([*manage, *words], cwd=extra.parent)
    assert worked.returncode == 0, worked.stderr
    assert seen(shop.url, ENDED) == [
        'extra.more.elsewhere completed "found"',
        "extra.tasks.apart completed 0",
        "extra.tasks.on_loop completed 0",
    ], worked.stderr


@pytest.mark.timeout(300)
def test_an_app_that_a_module_of_the_project_names_works_too(shop: Shop, extra: Path) -> None:
    """The module has models, which cannot be loaded before Django's apps are."""
    call(shop, extra, CALLS)
    environment = EXTRA | {"PYTHONPATH": str(extra)}
    command = [sys.executable, "-m", "tenure", "worker", "shop.tasks:app", "--drain"]
    worked = shop.run(command, environment)
    assert worked.returncode == 0, worked.stderr
    assert len(seen(shop.url, ENDED)) == 3


@pytest.mark.timeout(300)
def test_a_task_of_djangos_framework_survives_its_workers_death(shop: Shop, extra: Path) -> None:
    """Shows R20."""
    file = extra / "go"
    enqueue = "import django; django.setup(); from extra.tasks import wait_for; "
    job = call(shop, extra, f"{enqueue}print(wait_for.enqueue({str(file)!r}).id)")
    words = ["--settings=extra_settings", f"--pythonpath={extra}"]
    with shop.worker(*words) as worker:
        running = "SELECT id FROM tenure.job WHERE state = 'running'"
        soon(lambda: seen(shop.url, running) != [], 90, "the task was not started")
        [child] = worker.children
        os.kill(child, signal.SIGKILL)
        file.touch()
        soon(lambda: seen(shop.url, ENDED) != [], 120, worker.log())
        assert worker.stop() == 0
    text = call(
        shop,
        extra,
        f"{enqueue}result = wait_for.get_result({job!r}); "
        "print(result.status, result.return_value, result.attempts, "
        "result.errors[0].exception_class.__name__)",
    )
    assert text == "SUCCESSFUL seen 2 LeaseLost"


def test_invalid_settings_are_refused_before_a_worker_starts(shop: Shop, extra: Path) -> None:
    (extra / "extra_settings.py").write_text(SETTINGS.replace("IMPORTS", "IMPROTS"))
    environment = EXTRA | {"PYTHONPATH": str(extra)}
    output = shop.run([sys.executable, "manage.py", "tenure_worker"], environment)
    assert output.returncode == 1
    assert "write 'IMPORTS'" in output.stderr
    assert "Traceback" not in output.stderr


def test_its_help_is_that_of_the_worker(shop: Shop) -> None:
    reported: Any = shop.manage("tenure_worker", "--help")
    assert reported.returncode == 0
    for option in ("--queues", "--concurrency", "--processes", "--drain", "--grace", "--name"):
        assert option in reported.stdout


def test_it_cannot_be_called_from_within_a_program(shop: Shop) -> None:
    program = (
        "import django; from django.core.management import call_command; django.setup(); "
        "call_command('tenure_worker')"
    )
    environment = {"DJANGO_SETTINGS_MODULE": "project.settings"}
    output = shop.run([sys.executable, "-c", program], environment)
    assert "app.run()" in output.stderr


@pytest.mark.timeout(300)
def test_another_schema_is_migrated_served_and_asks_for_no_further_migration(
    shop: Shop, tmp_path: Path, empty_database: str
) -> None:
    (tmp_path / "named.py").write_text(
        "from project.settings import *\nTENURE = {'SCHEMA': 'jobs'}\n"
    )
    environment = {
        "DJANGO_SETTINGS_MODULE": "named",
        "PYTHONPATH": str(tmp_path),
        "DATABASE_URL": empty_database,
    }
    for words in (["migrate"], ["makemigrations", "--check", "--dry-run"]):
        done = shop.run([sys.executable, "manage.py", *words], environment)
        assert done.returncode == 0, done.stderr
    program = "import django; django.setup(); from shop.tasks import charge; charge.enqueue(1)"
    shop.run([sys.executable, "-c", program], environment)
    assert seen(empty_database, "SELECT task FROM jobs.job") == ["shop.tasks.charge"]
    worked = shop.run([sys.executable, "manage.py", "tenure_worker", "--drain"], environment)
    assert worked.returncode == 0, worked.stderr
    assert "Order matching query does not exist" in worked.stderr
