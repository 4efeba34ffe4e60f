"""What follows a migration: the partitions that the tables need before the first job can end."""

from collections.abc import Sequence
from typing import Any

from tenure import admin


def make_partitions(using: str, plan: Sequence[Any] = (), **_signal: object) -> None:
    """After a migration of ours was applied, make the partitions of the days ahead."""
    from tenure.contrib.django import app  # noqa: PLC0415 - Django loads this before its apps

    ours = any(step.app_label == "tenure" and not backwards for step, backwards in plan)
    if using != app.database or not ours:
        return
    engine = app.engine
    with admin.connect(engine.url, schema=engine.schema, check=False) as verbs:
        if verbs.schema().fits:
            verbs.maintain()
