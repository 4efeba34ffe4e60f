"""What the project's settings say about Tenure: the setting TENURE, and DATABASES."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from django.conf import settings

# What Django passes to psycopg itself, and not to libpq.
_PYTHON_ONLY = frozenset(
    {"autocommit", "context", "cursor_factory", "prepare_threshold", "row_factory"}
)


@dataclass(frozen=True, slots=True)
class Settings:
    """The setting TENURE, with what it leaves out."""

    database: str = "default"
    schema: str = "tenure"
    imports: Sequence[str] = ()
    pool_size: int = 10
    listen: bool = True
    program: str | None = None
    version: str | int | None = None


KEYS = frozenset(field.name.upper() for field in fields(Settings))


def raw_settings() -> Mapping[str, Any]:
    """The setting TENURE as it stands there."""
    given: Mapping[str, Any] = getattr(settings, "TENURE", {})
    return given


def read() -> Settings:
    """The setting TENURE. A key that means nothing is for the checks to tell: raised from here it
    would keep them from running."""
    return Settings(**{key.lower(): value for key, value in raw_settings().items() if key in KEYS})


def address(connection: Any) -> str:
    """The connection's database, as a connection string: what Django would connect with, OPTIONS
    included. It has the password."""
    params = connection.get_connection_params()
    if role := connection.settings_dict["OPTIONS"].get("assume_role"):
        # Django says SET ROLE once it is connected; the server can be asked for it at once.
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
