"""Django system checks for Tenure's settings."""

import difflib
from collections.abc import Iterator, Sequence
from typing import Any

from django.apps import AppConfig
from django.core import checks
from django.core.checks import CheckMessage, Error
from django.db import connections

from tenure import admin
from tenure.contrib.django import conf
from tenure.errors import InvalidValue

_PSYCOPG2 = (
    "run pip install 'tenure[binary]' or \"psycopg[binary]\": Django prefers psycopg 3 when it "
    "is installed"
)


def check(
    app_configs: Sequence[AppConfig] | None = None,  # noqa: ARG001 - Django passes it
    **_other: object,
) -> list[CheckMessage]:
    """Run all checks and return their messages."""
    if unknown := [str(key) for key in conf.raw_settings() if key not in conf.KEYS]:
        return [_unknown(key) for key in unknown]
    options = conf.read()
    try:
        admin.sql(options.schema)
    except InvalidValue as error:
        hint = "change TENURE['SCHEMA']"
        return [Error(f"settings.TENURE: {error}", hint=hint, id="tenure.E005")]
    if options.database not in connections:
        return [
            Error(
                f"settings.TENURE['DATABASE'] must be an alias in DATABASES, "
                f"got {options.database!r}",
                hint=f"use one of {', '.join(connections)}",
                id="tenure.E002",
            )
        ]
    return list(_of_database(connections[options.database], options))


def _unknown(key: str) -> CheckMessage:
    matches = difflib.get_close_matches(key.upper(), conf.KEYS, n=1)
    return Error(
        f"settings.TENURE has the unknown key {key!r}",
        hint=f"write {matches[0]!r}" if matches else f"use {', '.join(sorted(conf.KEYS))}",
        id="tenure.E001",
    )


def _of_database(connection: Any, options: conf.Settings) -> Iterator[CheckMessage]:
    alias = options.database
    if connection.vendor != "postgresql":
        yield Error(
            f"Tenure's database {alias!r} must be PostgreSQL, got {connection.display_name}",
            hint="set TENURE['DATABASE'] to the alias of a PostgreSQL database",
            id="tenure.E003",
        )
        return
    if connection.Database.__name__ != "psycopg":
        yield Error(
            f"Django must use psycopg 3 for the database {alias!r}, "
            f"got {connection.Database.__name__}",
            hint=_PSYCOPG2,
            id="tenure.E004",
        )
        return
    level = connection.settings_dict["OPTIONS"].get("isolation_level")
    if level is not None and getattr(level, "name", str(level)) not in ("READ_COMMITTED", "2"):
        yield checks.Warning(
            f"the isolation level of the database {alias!r} must be READ COMMITTED for "
            f"job.complete() and job.guard(), got {getattr(level, 'name', level)}",
            hint="remove OPTIONS['isolation_level'], or do not call these two methods",
            id="tenure.W001",
        )
    if not connection.settings_dict["AUTOCOMMIT"]:
        yield checks.Warning(
            f"the database {alias!r} has AUTOCOMMIT off: a job that you enqueue outside "
            "transaction.atomic() does not exist until you commit",
            hint="remove AUTOCOMMIT",
            id="tenure.W002",
        )
