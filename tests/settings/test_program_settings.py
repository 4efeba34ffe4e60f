"""A setting of a program: the argument, else the variable, else tenure.toml, else built in."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import pytest

from tenure import Tenure, _settings, worker
from tenure._settings import PROGRAM_SETTINGS, resolve
from tenure.config import DEFAULTS
from tenure.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

    from tenure.worker.child_process import WorkerOptions

# Three values of each: for the argument, the variable and the file.
SAID: dict[str, tuple[Any, Any, Any]] = {
    "app": ("a:app", "b:app", "c:app"),
    "database_url": ("postgresql://host/a", "postgresql://host/b", "postgresql://host/c"),
    "schema": ("one", "two", "three"),
    "pool_size": (1, 2, 3),
    "listen": (True, False, False),
    "redis_url": ("redis://host/1", "redis://host/2", "redis://host/3"),
    "program": ("shop", "bakery", "bank"),
    "version": ("1.1", "1.2", "1.3"),
    "queues": (["a"], ["b", "c"], ["d"]),
    "concurrency": (1, 2, 3),
    "processes": (1, 2, 3),
    "grace": (1.5, 2.5, 3.0),
    "load_timeout": (1.5, 2.5, 3.0),
    "max_jobs": (1, 2, 3),
    "max_memory": ("1mib", "2mib", "3mib"),
    "name": ("anna", "berta", "carla"),
    "host": ("127.0.0.1", "127.0.0.2", "127.0.0.3"),
    "port": (1, 2, 3),
    "environment": ("production", "staging", "test"),
    "environment_colour": ("red", "amber", "green"),
    "metrics_host": ("127.0.0.1", "127.0.0.2", "127.0.0.3"),
    "metrics_port": (1, 2, 3),
    "schedules": (True, False, False),
    "log_level": ("debug", "warning", "error"),
    "log_format": ("json", "text", "json"),
}


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory of its own, and an environment that sets nothing."""
    for name in [*os.environ]:
        if name.startswith("TENURE_") or name == "DATABASE_URL":
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def variable(monkeypatch: pytest.MonkeyPatch, name: str, value: Any) -> None:
    text = ",".join(value) if isinstance(value, list) else str(value).lower()
    monkeypatch.setenv(f"TENURE_{name.upper()}", text)


def file(here: Path, text: str) -> Path:
    path = here / "tenure.toml"
    path.write_text(text)
    return path


def refusal(name: str) -> str:
    with pytest.raises(ConfigError) as refused:
        resolve(name)
    return str(refused.value)


def test_there_are_values_to_try_for_every_setting() -> None:
    assert list(SAID) == list(PROGRAM_SETTINGS)


@pytest.mark.parametrize("name", PROGRAM_SETTINGS)
def test_the_argument_is_stronger_than_the_variable_and_that_than_the_file(
    name: str, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    argument, in_environment, in_file = SAID[name]
    assert resolve(name) == PROGRAM_SETTINGS[name].built_in
    file(here, f"{name} = {json.dumps(in_file)}")
    assert resolve(name) == in_file
    variable(monkeypatch, name, in_environment)
    assert resolve(name) == in_environment
    assert resolve(name, argument) == argument
    assert type(resolve(name)) is PROGRAM_SETTINGS[name].kind


@pytest.fixture
def plans(monkeypatch: pytest.MonkeyPatch) -> list[WorkerOptions]:
    """What workers were asked to be, instead of running them."""
    asked: list[WorkerOptions] = []

    def run(plan: WorkerOptions) -> int:
        asked.append(plan)
        return 0

    monkeypatch.setattr(worker, "run", run)
    return asked


WORKERS = {
    "app": ("target", "target"),
    "queues": ("queues", "queues"),
    "concurrency": ("concurrency", "slots"),
    "processes": ("processes", "processes"),
    "grace": ("grace", "grace"),
    "name": ("name", "name"),
    "schedules": ("schedules", "schedules"),
    "log_level": ("log_level", "log_level"),
    "log_format": ("log_format", "log_format"),
    "metrics_host": ("metrics_host", "metrics_host"),
    "metrics_port": ("metrics_port", "metrics_port"),
}


OF_AN_APP = ("database_url", "schema", "pool_size", "listen", "redis_url", "program", "version")


@pytest.mark.parametrize("name", WORKERS)
def test_a_worker_goes_by_the_argument_the_variable_and_the_file(
    name: str, here: Path, plans: list[WorkerOptions], monkeypatch: pytest.MonkeyPatch
) -> None:
    argument, in_environment, in_file = SAID[name]
    parameter, field = WORKERS[name]
    others: dict[str, Any] = {} if name == "app" else {"target": "jobs:app"}
    file(here, f"{name} = {json.dumps(in_file)}")
    worker.main(**others)
    variable(monkeypatch, name, in_environment)
    worker.main(**others)
    worker.main(**others, **{parameter: argument})
    assert [getattr(plan, field) for plan in plans] == [in_file, in_environment, argument]


def test_an_app_goes_by_the_argument_the_variable_and_the_file(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for at, source in ((2, "file"), (1, "variable"), (0, "argument")):
        if source == "file":
            said = (f"{name} = {json.dumps(SAID[name][2])}" for name in OF_AN_APP)
            file(here, "\n".join(said))
        elif source == "variable":
            for name in OF_AN_APP:
                variable(monkeypatch, name, SAID[name][1])
        given: dict[str, Any] = {}
        if source == "argument":
            names = ("schema", "pool_size", "listen", "program", "version")
            given = {name: SAID[name][0] for name in names}
            given["url"] = SAID["database_url"][0]
            given["redis"] = SAID["redis_url"][0]
        app = Tenure(**given)
        assert app.engine.url == SAID["database_url"][at]
        assert app.engine.schema == SAID["schema"][at]
        assert app.listen is SAID["listen"][at]
        assert app.program == SAID["program"][at]
        assert app.version == (1, at + 1)
        assert app.engine.notifier._place.url == SAID["redis_url"][at]  # type: ignore[union-attr]  # Not of the port.
        assert app.engine._pools.size == SAID["pool_size"][at]  # type: ignore[attr-defined]  # Not of the port.


def test_what_is_not_named_is_missed_with_what_to_write() -> None:
    with pytest.raises(ConfigError, match=r'app = "jobs:app" in tenure\.toml'):
        _settings.target()


@pytest.mark.parametrize(
    ("text", "name", "said"),
    [
        ("queue = ['mail']", "app", "has 'queue', which is no setting; did you mean queues?"),
        ("Log-Level = 'info'", "app", "has 'Log-Level', which is no setting; did you mean log_l"),
        ("zebra = 1", "app", "has 'zebra', which is no setting; the settings are app, data"),
        ("[worker]\nconcurrency = 1", "app", "has 'worker', which is no setting; "),
        ("processes = '4'", "processes", "is '4', not a whole number of at least 1; write it"),
        ("concurrency = '4'", "concurrency", "; write it as in concurrency = 10"),
        ("concurrency = 0", "concurrency", "is 0, not a whole number of at least 1; "),
        ("concurrency = true", "concurrency", "is True, not a whole number"),
        ("grace = -1", "grace", "is -1, not a number of at least 0; write it as in grace = 25"),
        ("grace = inf", "grace", "is inf, not a number"),
        ("listen = 'no'", "listen", "is 'no', not true or false; write it as in listen = false"),
        ("queues = 'mail'", "queues", "is 'mail', not a list of names; write it as in queues = ["),
        ("queues = [1]", "queues", "is [1], not a list of names; "),
        ("log_level = 'loud'", "log_level", "is 'loud', not one of debug, info, warning, error"),
        ("database_url = ['ana:geheim@h/d']", "database_url", "is a list, not a text; "),
        ("app = ", "app", "cannot be read: "),
    ],
)  # fmt: skip
def test_what_the_file_cannot_mean_is_refused_with_what_to_write(
    here: Path, text: str, name: str, said: str
) -> None:
    path = file(here, text)
    told = refusal(name)
    assert str(path) in told
    assert said in told
    assert "geheim" not in told


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("pool_size", "many", "is 'many', not a whole number of at least 1; set it as in TENURE_P"),
        ("concurrency", "0", "is '0', not a whole number of at least 1"),
        ("grace", "nan", "is 'nan', not a number of at least 0"),
        ("listen", "perhaps", "is 'perhaps', not true or false; set it as in TENURE_LISTEN=false"),
        ("queues", " , ", "is ' , ', not a list of names; set it as in TENURE_QUEUES=mail,default"),
        ("log_level", "loud", "is 'loud', not one of debug"),
    ],
)  # fmt: skip
def test_what_a_variable_cannot_mean_is_refused_with_what_to_set(
    monkeypatch: pytest.MonkeyPatch, name: str, text: str, said: str
) -> None:
    monkeypatch.setenv(f"TENURE_{name.upper()}", text)
    assert refusal(name).startswith(f"TENURE_{name.upper()} {said}")


@pytest.mark.parametrize("text", ["1", "true", "YES", "on"])
def test_a_variable_says_true_in_several_words(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TENURE_LISTEN", text)
    assert resolve("listen") is True


def test_a_level_may_be_in_capitals(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TENURE_LOG_LEVEL", "WARNING")
    assert resolve("log_level") == "warning"


def test_a_variable_that_is_empty_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TENURE_CONCURRENCY", "")
    assert resolve("concurrency") == 10


def test_the_built_in_grace_is_the_one_of_the_defaults() -> None:
    assert PROGRAM_SETTINGS["grace"].built_in == DEFAULTS.grace.total_seconds()


def test_a_worker_that_ends_with_its_queues_fires_no_schedules(plans: list[WorkerOptions]) -> None:
    """Else it might never find them empty."""
    worker.main("jobs:app", drain=True, schedules=True)
    assert [plan.schedules for plan in plans] == [False]
