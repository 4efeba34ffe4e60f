"""What an import costs, and what it brings along."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from support.machine import slowdown
from tests.timing import median

if TYPE_CHECKING:
    from collections.abc import Iterator

MOST_MILLISECONDS = 150
DRIVER = {"psycopg", "psycopg_pool", "psycopg_binary", "typing_extensions"}
IMPORTS = "import tenure"
DECLARES = "from tenure import Job, Tenure\napp = Tenure()\n@app.task\ndef hello(name: str): ..."

# Modules that Python loads before the program are not counted.
IMPORT = """
import sys, time
before, used = set(sys.modules), time.process_time()
{code}
used = time.process_time() - used
print(used * 1000, *sorted({{name.partition('.')[0] for name in set(sys.modules) - before}}))
"""


@pytest.fixture(scope="module", autouse=True)
def _compiled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Modules are compiled once: an installed package is, a checkout may not be."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
        patch.setenv("PYTHONPYCACHEPREFIX", str(tmp_path_factory.mktemp("compiled")))
        yield


def importing(code: str) -> tuple[float, set[str]]:
    """The milliseconds of the processor that this takes, and the packages that it loads."""
    done = subprocess.run(
        [sys.executable, "-c", IMPORT.format(code=code)],
        check=True,
        capture_output=True,
        text=True,
    )
    used, *loaded = done.stdout.split()
    ours = {name for name in loaded if not name.startswith(("_", "cython_"))}
    return float(used), ours - sys.stdlib_module_names


@pytest.mark.parametrize("code", [IMPORTS, DECLARES], ids=["import", "declare"])
def test_a_program_loads_only_the_standard_library(code: str) -> None:
    _, loaded = importing(code)
    assert loaded == {"tenure"}


@pytest.mark.timing
@pytest.mark.parametrize("code", [IMPORTS, DECLARES], ids=["import", "declare"])
def test_an_import_is_quick(code: str) -> None:
    importing(code)  # It compiles the modules.
    assert median(lambda: importing(code)[0]) <= MOST_MILLISECONDS * slowdown()


def test_the_first_need_of_the_database_loads_the_driver_and_no_more() -> None:
    _, loaded = importing("from tenure import Tenure; Tenure('postgresql://host/name').engine")
    assert {"tenure", "psycopg", "psycopg_pool"} <= loaded
    assert loaded <= {"tenure"} | DRIVER


def test_what_reads_cron_expressions_is_loaded_with_the_first_of_them() -> None:
    rules = "from tenure._rules import timing; from tenure._model.schedule import Timing\n"
    interval = "from datetime import timedelta; timing.check(Timing(every=timedelta(1)))"
    _, loaded = importing(rules + interval)
    assert loaded == {"tenure"}
    _, loaded = importing(rules + "timing.check(Timing(cron='@daily'))")
    assert loaded == {"tenure", "cronsim"}


def test_missing_libpq_names_the_fix() -> None:
    code = (
        "import os, sys; os.environ['PSYCOPG_IMPL'] = 'python'; import ctypes.util; "
        "ctypes.util.find_library = lambda name: None\n"
        "from tenure import Tenure\n"
        "try: Tenure('postgresql://host/name').engine\n"
        "except ImportError as error: sys.exit(str(error))"
    )
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert 'pip install "tenure[binary]"' in done.stderr


@pytest.mark.parametrize("name", ["Job", "Retry", "Backoff", "errors"])
def test_a_name_of_the_public_api_loads_nothing_else_either(name: str) -> None:
    _, loaded = importing(f"from tenure import {name}")
    assert loaded <= {"tenure"} | DRIVER
