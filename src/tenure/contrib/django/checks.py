"""System checks: what can be seen to be wrong before anything is enqueued."""

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
    "pip install 'tenure[binary]', or \"psycopg[binary]\": Django takes psycopg 3 by itself "
    "once it can be loaded"
)


def check(
    app_configs: Sequence[AppConfig] | None = None,  # noqa: ARG001 - what Django passes
    **_other: object,
) -> list[CheckMessage]:
    """The messages of all checks."""
    if unknown := [str(key) for key in conf.raw_settings() if key not in conf.KEYS]:
        return [_unknown(key) for key in unknown]
    options = conf.read()
    try:
        admin.sql(options.schema)
    except InvalidValue as error:
        what, _, hint = str(error).partition(": ")
        return [Error(f"settings.TENURE: {what}", hint=f"use {hint}", id="tenure.E005")]
    if options.database not in connections:
        return [
            Error(
                f"settings.TENURE names the database {options.database!r}, "
                "which is not in DATABASES",
                hint=f"name one of {', '.join(connections)} as TENURE['DATABASE']",
                id="tenure.E002",
            )
        ]
    return list(_of_database(connections[options.database], options))


def _unknown(key: str) -> CheckMessage:
    matches = difflib.get_close_matches(key.upper(), conf.KEYS, n=1)
    return Error(
        f"settings.TENURE has the key {key!r}, which means nothing",
        hint=f"write {matches[0]!r}" if matches else f"it takes {', '.join(sorted(conf.KEYS))}",
        id="tenure.E001",
    )


def _of_database(connection: Any, options: conf.Settings) -> Iterator[CheckMessage]:
    alias = options.database
    if connection.vendor != "postgresql":
        yield Error(
            f"Tenure's database {alias!r} is {connection.display_name}, and jobs need PostgreSQL",
            hint="name an alias of a PostgreSQL database as TENURE['DATABASE']",
            id="tenure.E003",
        )
        return
    if connection.Database.__name__ != "psycopg":
        yield Error(
            f"Django reaches the database {alias!r} over {connection.Database.__name__}, and "
            "Tenure can join transactions of psycopg 3 only",
            hint=_PSYCOPG2,
            id="tenure.E004",
        )
        return
    level = connection.settings_dict["OPTIONS"].get("isolation_level")
    if level is not None and getattr(level, "name", str(level)) not in ("READ_COMMITTED", "2"):
        yield checks.Warning(
            f"the transactions of the database {alias!r} are {getattr(level, 'name', level)}, and "
            "job.complete() and job.guard() are refused in any but READ COMMITTED",
            hint="leave OPTIONS['isolation_level'] away, or complete jobs by returning only",
            id="tenure.W001",
        )
    if not connection.settings_dict["AUTOCOMMIT"]:
        yield checks.Warning(
            f"the database {alias!r} has AUTOCOMMIT off: a job that is enqueued outside "
            "transaction.atomic() does not exist until somebody commits",
            hint="leave AUTOCOMMIT away",
            id="tenure.W002",
        )
