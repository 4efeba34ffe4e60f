"""Time zones by name, and the instants at which their clocks change. What they are is tzdata's."""

from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo, available_timezones

from tenure.errors import InvalidValue

# Names under which a machine keeps its own zone, or times that count leap seconds.
_NO_ZONE_OF_ITS_OWN = ("localtime", "posixrules", "right/")
_SECOND = timedelta(seconds=1)


@lru_cache(maxsize=1024)
def zone_named(name: str) -> tzinfo:
    """The zone of this name. UTC needs no database of zones."""
    if name == "UTC":
        return UTC
    try:
        if not name.startswith(_NO_ZONE_OF_ITS_OWN):
            return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        pass
    raise InvalidValue(_unknown(name))


def _unknown(name: str) -> str:
    from difflib import get_close_matches  # noqa: PLC0415 - only for who mistyped

    known = sorted(set(available_timezones()) - set(_NO_ZONE_OF_ITS_OWN))
    if not known:
        return (
            f"there is no time zone {name!r}, nor any other but UTC: this machine has no database "
            "of zones; pip install tzdata"
        )
    zones = {zone.casefold(): zone for zone in known}
    cities = {zone.rpartition("/")[2]: zone for zone in zones}
    wanted = name.strip().replace(" ", "_").casefold()
    if (exact := cities.get(wanted, wanted)) in zones:
        return f"there is no time zone {name!r}; write {zones[exact]}"
    near = get_close_matches(wanted, zones, n=3, cutoff=0.75)
    near += [cities[city] for city in get_close_matches(wanted, cities, n=3, cutoff=0.8)]
    meant = [zones[zone] for zone in dict.fromkeys(near)][:3]
    hint = f"did you mean {' or '.join(meant)}?" if meant else "write one such as Europe/Berlin"
    return f"there is no time zone {name!r}; {hint}"


def offset_at(zone: tzinfo, instant: datetime) -> timedelta:
    """How far the zone's clocks are ahead of UTC at an instant."""
    return instant.astimezone(zone).utcoffset() or timedelta(0)


def change_within(zone: tzinfo, after: datetime, until: datetime) -> datetime | None:
    """The instant in a day or so, after one and up to another, from which clocks show otherwise.

    Of two changes that cancel each other nothing is seen: no zone has them within a day.
    """
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
