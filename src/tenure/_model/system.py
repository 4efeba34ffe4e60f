"""What an installation stands on: the server and how it keeps what is acknowledged, who keeps dead
rows from being removed, how much history there is."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta

from tenure._model.overview import Holder


@dataclass(frozen=True, slots=True)
class Durability:
    """What a commit waits for: the disk here, and the standbys that `standby_names` names. So many
    standbys are connected."""

    fsync: bool
    full_page_writes: bool
    synchronous_commit: str
    standby_names: str
    standbys: int


@dataclass(frozen=True, slots=True)
class History:
    """A table with a partition for each day, from the first to the last, which is ahead of today;
    `keep` is how long a day is kept."""

    name: str
    days: int
    first: date
    last: date
    bytes: int
    keep: timedelta


@dataclass(frozen=True, slots=True)
class System:
    """What an installation stands on."""

    version: str
    role: str
    durability: Durability
    holders: Sequence[Holder]
    histories: Sequence[History]
