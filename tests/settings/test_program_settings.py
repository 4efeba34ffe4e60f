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
GIVEN: dict[str, tuple[Any, Any, Any]] = {
    "app": ("a:app", "b:app", "c:app"),
    "database_url": ("postgresql://host/a", "postgresql://host/b", "postgresql://host/c"),
    "schema": ("one", "two", "three"),
    "pool_size": (1, 2, 3),
    "listen": (True, False, False),
    "redis_url": ("redis://host/1", "redis://host/2", "redis://host/3"),
    "program": ("shop", "bakery", "bank"),
    "version": ("1.1", "1.2", "1.3"),
    "queues": (["a"], ["b", "c"], ["d"]),
    "kinds": (["http"], ["shell", "grpc"], ["grpc"]),
    "concurrency": (1, 2, 3),
    "processes": (1, 2, 3),
    "lease": (15.0, 25.0, 30.0),
    "grace": (1.5, 2.5, 3.0),
    "load_timeout": (1.5, 2.5, 3.0),
    "max_jobs": (1, 2, 3),
    "max_memory": ("1mib", "2mib", "3mib"),
    "name": ("anna", "berta", "carla"),
    "host": ("127.0.0.1", "127.0.0.2", "127.0.0.3"),
    "port": (1, 2, 3),
    "max_connections": (1, 2, 3),
    "max_connections_per_address": (1, 2, 3),
    "public_url": ("https://a.example", "https://b.example", "https://c.example"),
    "allowed_hosts": (["a"], ["b", "c"], ["d"]),
    "trusted_proxies": (["10.0.0.1"], ["10.0.0.2", "10.0.0.3"], ["10.0.0.4"]),
    "proxy_user_header": ("x-a", "x-b", "x-c"),
    "proxy_roles": (["a=viewer"], ["b=viewer", "c=admin"], ["d=viewer"]),
    "session_idle": (1.0, 2.0, 3.0),
    "session_lifetime": (1.0, 2.0, 3.0),
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
    assert list(GIVEN) == list(PROGRAM_SETTINGS)


@pytest.mark.parametrize("name", PROGRAM_SETTINGS)
def test_the_argument_is_stronger_than_the_variable_and_that_than_the_file(
    name: str, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    argument, in_environment, in_file = GIVEN[name]
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
    requests: list[WorkerOptions] = []

    def run(plan: WorkerOptions) -> int:
        requests.append(plan)
        return 0

    monkeypatch.setattr(worker, "run", run)
    return requests


WORKERS = {
    "app": ("target", "target"),
    "queues": ("queues", "queues"),
    "kinds": ("kinds", "kinds"),
    "concurrency": ("concurrency", "slots"),
    "processes": ("processes", "processes"),
    "lease": ("lease", "lease"),
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
    argument, in_environment, in_file = GIVEN[name]
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
            text = (f"{name} = {json.dumps(GIVEN[name][2])}" for name in OF_AN_APP)
            file(here, "\n".join(text))
        elif source == "variable":
            for name in OF_AN_APP:
                variable(monkeypatch, name, GIVEN[name][1])
        given: dict[str, Any] = {}
        if source == "argument":
            names = ("schema", "pool_size", "listen", "program", "version")
            given = {name: GIVEN[name][0] for name in names}
            given["url"] = GIVEN["database_url"][0]
            given["redis"] = GIVEN["redis_url"][0]
        app = Tenure(**given)
        assert app.engine.url == GIVEN["database_url"][at]
        assert app.engine.schema == GIVEN["schema"][at]
        assert app.listen is GIVEN["listen"][at]
        assert app.program == GIVEN["program"][at]
        assert app.version == (1, at + 1)
        assert app.engine.notifier._place.url == GIVEN["redis_url"][at]  # type: ignore[union-attr]  # Not of the port.
        assert app.engine._pools.size == GIVEN["pool_size"][at]  # type: ignore[attr-defined]  # Not of the port.


def test_what_is_not_named_is_missed_with_what_to_write() -> None:
    with pytest.raises(ConfigError, match=r'app = "jobs:app" in tenure\.toml'):
        _settings.target()


@pytest.mark.parametrize(
    ("text", "name", "given"),
    [
        ("queue = ['mail']", "app", "has an unknown setting 'queue'; did you mean queues?"),
        ("Log-Level = 'info'", "app", "has an unknown setting 'Log-Level'; did you mean log_l"),
        ("zebra = 1", "app", "has an unknown setting 'zebra'; the settings are app, data"),
        ("[worker]\nconcurrency = 1", "app", "has an unknown setting 'worker'; "),
        ("processes = '4'", "processes", "must be an integer of at least 1, got '4'; write it"),
        ("concurrency = '4'", "concurrency", "; write it as concurrency = 10"),
        ("concurrency = 0", "concurrency", "must be an integer of at least 1, got 0; "),
        ("concurrency = true", "concurrency", "must be an integer of at least 1, got True"),
        ("grace = -1", "grace", "must be a number of at least 0, got -1; write it as grace = 25"),
        ("grace = inf", "grace", "must be a number of at least 0, got inf"),
        ("listen = 'no'", "listen", "must be true or false, got 'no'; write it as listen = false"),
        ("queues = 'mail'", "queues", "names, got 'mail'; write it as queues = ["),
        ("queues = [1]", "queues", "must be a list of names, got [1]; "),
        ("log_level = 'loud'", "log_level", "must be one of debug, info, warning, error"),
        ("database_url = ['ana:geheim@h/d']", "database_url", "must be a string, got a list; "),
        ("app = ", "app", "cannot be read: "),
    ],
)  # fmt: skip
def test_what_the_file_cannot_mean_is_refused_with_what_to_write(
    here: Path, text: str, name: str, given: str
) -> None:
    path = file(here, text)
    reported = refusal(name)
    assert str(path) in reported
    assert given in reported
    assert "geheim" not in reported


@pytest.mark.parametrize(
    ("name", "text", "given"),
    [
        ("pool_size", "many", "must be an integer of at least 1, got 'many'; set it as TENURE_P"),
        ("concurrency", "0", "must be an integer of at least 1, got '0'"),
        ("grace", "nan", "must be a number of at least 0, got 'nan'"),
        ("listen", "perhaps", "must be true or false, got 'perhaps'; set it as TENURE_L"),
        ("queues", " , ", "must be a list of names, got ' , '; set it as TENURE_Q"),
        ("log_level", "loud", "must be one of debug"),
    ],
)  # fmt: skip
def test_what_a_variable_cannot_mean_is_refused_with_what_to_set(
    monkeypatch: pytest.MonkeyPatch, name: str, text: str, given: str
) -> None:
    monkeypatch.setenv(f"TENURE_{name.upper()}", text)
    assert refusal(name).startswith(f"TENURE_{name.upper()} {given}")


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
