"""Read Tenure's part of the project's settings: TENURE and DATABASES."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from django.conf import settings
from django.utils.module_loading import import_string

# Options that Django passes to psycopg, not to libpq.
_PYTHON_ONLY = frozenset(
    {"autocommit", "context", "cursor_factory", "prepare_threshold", "row_factory"}
)


@dataclass(frozen=True, slots=True)
class Settings:
    """The TENURE setting, with defaults."""

    database: str = "default"
    schema: str = "tenure"
    imports: Sequence[str] = ()
    pool_size: int = 10
    listen: bool = True
    program: str | None = None
    version: str | int | None = None
    # A codec, or its dotted path.
    codec: Any = None


KEYS = frozenset(field.name.upper() for field in fields(Settings))


def raw_settings() -> Mapping[str, Any]:
    """Return the TENURE setting without defaults."""
    given: Mapping[str, Any] = getattr(settings, "TENURE", {})
    return given


def read() -> Settings:
    """Return the TENURE setting with defaults.

    Unknown keys are ignored here, because an error would stop the system checks that report them.
    """
    options = Settings(
        **{key.lower(): value for key, value in raw_settings().items() if key in KEYS}
    )
    if isinstance(options.codec, str):
        return replace(options, codec=import_string(options.codec))
    return options


def address(connection: Any) -> str:
    """Return the connection string that Django would use, with OPTIONS and the password."""
    params = connection.get_connection_params()
    if role := connection.settings_dict["OPTIONS"].get("assume_role"):
        # Django runs SET ROLE after connecting. Here, the role is passed as a connection option.
        escaped = str(role).replace("\\", "\\\\").replace(" ", "\\ ")
        params["options"] = f"{params.get('options') or ''} -c role={escaped}".strip()
    return " ".join(
        f"{name}={_quoted(str(value))}"
        for name, value in params.items()
        if name not in _PYTHON_ONLY and value is not None
    )


def _quoted(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
