"""Load an app from `module:attribute`, along with its task modules."""

import importlib
import importlib.util
import os
import sys
import traceback
from difflib import get_close_matches
from pathlib import Path
from types import ModuleType

from tenure._runtime.host import finish_loading
from tenure.app import Tenure
from tenure.errors import ConfigError


def load(target: str) -> Tenure:
    module_name, _, attribute = target.partition(":")
    module = _module(module_name, target)
    app = getattr(module, attribute or "app", None)
    if not isinstance(app, Tenure):
        name = attribute or "app"
        not_an_app = f"{name} in {module_name} is a {type(app).__name__}, not a Tenure()"
        reason = not_an_app if hasattr(module, name) else f"{module_name} has no {name!r}"
        raise ConfigError(f"{reason}; {_apps_of(module)}")
    finish_loading(app)
    return app


def describe_load_error(error: BaseException) -> str:
    if isinstance(error, SyntaxError):
        return f"{type(error).__name__}: {error.msg} ({error.filename}:{error.lineno})"
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__}: {error} ({last.filename}:{last.lineno})"


def _module(name: str, target: str) -> ModuleType:
    here = Path.cwd()
    if str(here) not in sys.path:
        sys.path.insert(0, str(here))
    if not all(part.isidentifier() for part in name.split(".")):
        raise ConfigError(f"{target!r} does not name a module; write jobs:app for `app` in jobs.py")
    _set_up_django()
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        # A missing import in the user's code doesn't mean that the target is wrong.
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise
        raise ConfigError(
            f"there is no module {error.name!r} in {here}; {_near(error.name, here)}"
        ) from error


def _near(name: str, here: Path) -> str:
    parent, _, last = name.rpartition(".")
    # `jobs.py:app` names the file instead of the module.
    if last == "py" and (here / f"{parent}.py").exists():
        return f"write {parent}:app, without the .py"
    there = [file.stem for file in here.glob("*.py")]
    near = get_close_matches(name, there, n=1)
    if near:
        return f"did you mean {near[0]}:app?"
    return "run it in the directory of your code, or add that directory to PYTHONPATH"


def _apps_of(module: ModuleType) -> str:
    apps = [name for name, value in vars(module).items() if isinstance(value, Tenure)]
    if apps:
        return f"did you mean {module.__name__}:{apps[0]}?"
    return f"write app = Tenure() in {module.__name__}, or name the module that has it"


def _set_up_django() -> None:
    """Set up Django if DJANGO_SETTINGS_MODULE is set: models can't be imported before that."""
    if os.environ.get("DJANGO_SETTINGS_MODULE") and importlib.util.find_spec("django"):
        importlib.import_module("django").setup()
