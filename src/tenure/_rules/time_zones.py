"""Time zones by name (from tzdata), and when their clocks change."""

from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo, available_timezones

from tenure.errors import InvalidValue

# Names for the machine's own zone, or for zones that count leap seconds.
_NO_ZONE_OF_ITS_OWN = ("localtime", "posixrules", "right/")
_SECOND = timedelta(seconds=1)


@lru_cache(maxsize=1024)
def zone_named(name: str) -> tzinfo:
    """Return the zone. UTC needs no tzdata."""
    if name == "UTC":
        return UTC
    try:
        if not name.startswith(_NO_ZONE_OF_ITS_OWN):
            return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        pass
    raise InvalidValue(_unknown(name))


def _unknown(name: str) -> str:
    from difflib import get_close_matches  # noqa: PLC0415 - only for a mistyped name

    known = sorted(set(available_timezones()) - set(_NO_ZONE_OF_ITS_OWN))
    if not known:
        return (
            f"time zone {name!r} does not exist: this machine has no time zone database, "
            "so only UTC works; pip install tzdata"
        )
    zones = {zone.casefold(): zone for zone in known}
    cities = {zone.rpartition("/")[2]: zone for zone in zones}
    wanted = name.strip().replace(" ", "_").casefold()
    if (exact := cities.get(wanted, wanted)) in zones:
        return f"time zone {name!r} does not exist; write {zones[exact]}"
    near = get_close_matches(wanted, zones, n=3, cutoff=0.75)
    near += [cities[city] for city in get_close_matches(wanted, cities, n=3, cutoff=0.8)]
    suggestions = [zones[zone] for zone in dict.fromkeys(near)][:3]
    hint = (
        f"did you mean {' or '.join(suggestions)}?"
        if suggestions
        else "write one such as Europe/Berlin"
    )
    return f"time zone {name!r} does not exist; {hint}"


def offset_at(zone: tzinfo, instant: datetime) -> timedelta:
    """Return how far ahead of UTC the zone is at an instant."""
    return instant.astimezone(zone).utcoffset() or timedelta(0)


def change_within(zone: tzinfo, after: datetime, until: datetime) -> datetime | None:
    """Return the instant when the offset changes, within about a day."""
    before = offset_at(zone, after)
    if offset_at(zone, until) == before:
        return None
    while until - after > _SECOND:
        middle = (after + (until - after) / 2).replace(microsecond=0)
        if offset_at(zone, middle) == before:
            after = middle
        else:
            until = middle
    return until
