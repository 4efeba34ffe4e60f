"""A cron's ticks between two instants, by the oracle."""

from datetime import datetime


def walk(cron: str, zone: str, after: datetime, until: datetime) -> list[datetime]:
    raise NotImplementedError
