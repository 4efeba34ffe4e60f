"""What a worker's configuration says about each kind of work, and named secrets.

The configuration belongs to the worker. A job can name a secret, but can't contain or choose one.
"""

import json
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tenure import _settings
from tenure.errors import ConfigError

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,62}")
_LARGEST_FILE = 64 * 1024


def settings_of(kind: str) -> Mapping[str, Any]:
    """Return the table `[kinds.KIND]` of tenure.toml, or TENURE_KINDS_KIND as a JSON object.

    Raises:
        ConfigError: The table isn't a table, or the variable isn't a JSON object.
    """
    variable = f"TENURE_KINDS_{kind.upper()}"
    if text := os.environ.get(variable):
        try:
            values = json.loads(text)
        except ValueError:
            values = None
        if not isinstance(values, dict):
            raise ConfigError(
                f"{variable} must be a JSON object, got something else; write it as "
                f"""{variable}='{{"allow": ["…"]}}'"""
            )
        return values
    return _settings.kind_table(kind)


def is_secret_name(name: object) -> bool:
    """Return whether a secret can have this name."""
    return isinstance(name, str) and _NAME.fullmatch(name) is not None


def secret(name: str) -> Sequence[str]:
    """Return the current secrets with this name: one, or several during a rotation.

    They are separated by whitespace in TENURE_SECRET_NAME, or in the file that
    TENURE_SECRET_NAME_FILE names. The file is read again each time.

    Raises:
        ConfigError: This worker has no such secret, or its file can't be read.
    """
    variable = f"TENURE_SECRET_{name.upper()}"
    text = os.environ.get(variable)
    if text is None and (file := os.environ.get(f"{variable}_FILE")):
        try:
            with Path(file).open(encoding="utf-8") as opened:
                text = opened.read(_LARGEST_FILE)
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "it is not text"
            raise ConfigError(
                f"the file of secret {name!r} cannot be read: {reason}; check {variable}_FILE"
            ) from None
    secrets = (text or "").split()
    if not is_secret_name(name) or not secrets:
        raise ConfigError(
            f"this worker has no secret {name!r}; set {variable} or {variable}_FILE in its "
            "environment"
        )
    return secrets
