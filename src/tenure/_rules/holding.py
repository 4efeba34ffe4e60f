"""Who keeps dead rows from being removed: from when on that matters, and how it is ended."""

from dataclasses import dataclass
from datetime import timedelta

from tenure._model.overview import Holder, HolderKind
from tenure._rules.words import span

# A dump or a report may take a while; a table of jobs grows by what is not removed.
HELD_FOR = timedelta(minutes=10)
# Where the age cannot be seen, or there is none.
HELD_TRANSACTIONS = 1_000_000


@dataclass(frozen=True, slots=True)
class DeadRows:
    """Who keeps them, in words, and what ends it: a statement, or words."""

    who: str
    command: str
    in_sql: bool = True


def matters(holder: Holder) -> bool:
    """Whether it has gone on for so long that tables grow by it."""
    if holder.age is not None:
        return holder.age >= HELD_FOR
    return holder.lag >= HELD_TRANSACTIONS


def dead_rows(holder: Holder) -> DeadRows:
    """Who it is and what to do, for the kinds there are."""
    length = f"{holder.lag:,} transactions" if holder.age is None else span(holder.age)
    holds = f"holds them for {length}"
    quoted = holder.name.replace("'", "''")
    match holder.kind:
        case HolderKind.SESSION:
            state = f", {holder.state}" if holder.state else ""
            return DeadRows(
                f"pid {holder.name} ({holder.application or 'unknown'}{state}) {holds}",
                f"SELECT pg_terminate_backend({holder.name})",
            )
        case HolderKind.STANDBY:
            return DeadRows(
                f"the standby {holder.application or holder.name} {holds}, by its feedback",
                "end the long query on that standby, or switch off its hot_standby_feedback",
                in_sql=False,
            )
        case HolderKind.PREPARED:
            return DeadRows(
                f"the prepared transaction {holder.name} {holds}", f"ROLLBACK PREPARED '{quoted}'"
            )
        case HolderKind.SLOT:
            return DeadRows(
                f"the replication slot {holder.name} ({holder.state}) {holds}",
                f"SELECT pg_drop_replication_slot('{quoted}')",
            )
