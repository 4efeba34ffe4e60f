"""Cron's fields read once more, as plainly as can be, for the oracle. Nothing of tenure is here."""

from __future__ import annotations

from calendar import monthrange
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import date

MONTHS = ["", "JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"]
DAYS = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"]


@dataclass(frozen=True, slots=True)
class PlainCron:
    """The five fields, as they were written."""

    minute: str
    hour: str
    day: str
    month: str
    weekday: str

    @property
    def fixed(self) -> bool:
        """Whether it names times of day: neither minute nor hour begins with a star."""
        return self.minute[0] != "*" and self.hour[0] != "*"

    def minutes(self) -> set[int]:
        """The minutes of an hour."""
        return {value for value in range(60) if _in(self.minute, value, 0, 59)}

    def hours(self) -> set[int]:
        """The hours of a day."""
        return {value for value in range(24) if _in(self.hour, value, 0, 23)}

    def on(self, day: date) -> bool:
        """Whether it has this day: both day fields if one begins with a star, else either."""
        if not _in(self.month, day.month, 1, 12, MONTHS):
            return False
        by_month, by_week = _month_day(self.day, day), _week_day(self.weekday, day)
        if self.day[0] == "*" or self.weekday[0] == "*":
            return by_month and by_week
        return by_month or by_week


def plain(expression: str) -> PlainCron:
    """The expression's fields."""
    return PlainCron(*expression.upper().split())


def _in(field: str, value: int, low: int, high: int, names: list[str] | None = None) -> bool:
    return any(_term(term, value, low, high, names or []) for term in field.split(","))


def _term(term: str, value: int, low: int, high: int, names: list[str]) -> bool:
    body, _, step = term.partition("/")
    if body == "*":
        start, end = low, high
    elif "-" in body:
        first, _, final = body.partition("-")
        start, end = _number(first, names), _number(final, names)
    else:
        start = _number(body, names)
        end = high if step else start
    return start <= value <= end and (value - start) % int(step or 1) == 0


def _number(text: str, names: list[str]) -> int:
    return names.index(text) if text in names else int(text)


def _month_day(field: str, day: date) -> bool:
    length = monthrange(day.year, day.month)[1]
    for term in field.split(","):
        if term == "L":
            fits = day.day == length
        elif term == "LW":
            later = [day + timedelta(days=n) for n in range(1, length - day.day + 1)]
            fits = day.isoweekday() <= 5 and all(one.isoweekday() > 5 for one in later)
        else:
            fits = _term(term, day.day, 1, 31, [])
        if fits:
            return True
    return False


def _week_day(field: str, day: date) -> bool:
    shown = {day.isoweekday() % 7, day.isoweekday()}  # Sunday is 0 and 7
    for term in field.split(","):
        if term.endswith("L"):
            next_week = day + timedelta(days=7)
            fits = int(term[:-1]) in shown and next_week.month != day.month
        elif "#" in term:
            name, _, nth = term.partition("#")
            fits = _number(name, DAYS) in shown and (day.day - 1) // 7 + 1 == int(nth)
        else:
            fits = any(_term(term, one, 0, 7, DAYS) for one in shown)
        if fits:
            return True
    return False
