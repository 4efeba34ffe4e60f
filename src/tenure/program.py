"""Which program this is, and which release of it: by these a schedule knows whose code declares it.

Standard library and errors only.
"""

import re
import sys
from collections.abc import Sequence
from pathlib import Path

from tenure.errors import InvalidValue

_OURS = "tenure"
_VERSION = re.compile(r"v?(\d+(?:\.\d+)*)", re.ASCII | re.IGNORECASE)
_LARGEST = 2**63 - 1


def module_name(name: str) -> str:
    """A module's name as others import it, also of the one that is being run."""
    if name != "__main__":
        return name
    main = sys.modules["__main__"]
    spec = getattr(main, "__spec__", None)
    if spec is not None:
        return str(spec.name).removesuffix(".__main__")
    file = getattr(main, "__file__", None)
    # What is piped into Python has a file's name that is none: <stdin>.
    return Path(file).stem if file and not file.startswith("<") else "__main__"


def calling_module() -> str:
    """The name of the module whose code called into Tenure."""
    frame = sys._getframe(1)  # noqa: SLF001 - inspect's way takes the source of every frame
    while True:
        name: str = frame.f_globals.get("__name__", "__main__")
        if frame.f_back is None or not f"{name}.".startswith(f"{_OURS}."):
            return module_name(name)
        frame = frame.f_back


def ordered(version: object) -> Sequence[int]:
    """A version as numbers that can be compared; zeros at its end count for nothing, and none at
    all is the lowest. InvalidValue for what has no order."""
    if version is None:
        return ()
    found = None
    # Not a float: 1.10 would be 1.1.
    if isinstance(version, str | int) and not isinstance(version, bool):
        found = _VERSION.fullmatch(str(version).strip())
    numbers = [int(part) for part in found[1].split(".")] if found else []
    if not numbers or max(numbers) > _LARGEST:
        raise InvalidValue(
            f"version is {version!r}, which says not whether it is older or newer than another; "
            'write numbers that grow with every release, as in version="2026.11.15" or a build '
            "number"
        )
    while numbers and not numbers[-1]:
        numbers.pop()
    return tuple(numbers)
