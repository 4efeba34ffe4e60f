"""Maintenance: create upcoming partitions and drop expired ones. Jobs never wait for it."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta

from tenure._model.ids import Json
from tenure._model.results import MaintenanceReport
from tenure._store.postgres.settings import SettingQueries
from tenure._store.postgres.statements import QueryBase
from tenure._store.steps import Op, RawSql, Rows
from tenure.config import DEFAULTS
from tenure.errors import QueryFailed

DAYS_AHEAD = 14
_BATCH = 1000
_ROUNDS = 1000
# Another process was faster (duplicate table, already a partition, already gone), or a reader holds
# a lock. Either way, leave the partition for the next run.
_BENIGN = frozenset({"23505", "42P07", "42809", "42P01", "55000", "55P03", "57014"})


@dataclass(eq=False)
class MaintenanceQueries(QueryBase):
    settings: SettingQueries

    def maintain(self) -> Op[MaintenanceReport]:
        """Create upcoming partitions, and drop data that is past its retention.

        Run it as the schema owner and outside a transaction. Partitions are detached concurrently,
        so workers can keep settling jobs.
        """
        set_days = yield from self.settings.changed()
        done, left = yield from self._partitions(set_days)
        failed = yield from self._prune("prune_failed", keep=kept(set_days, "keep_failed_days"))
        keys = yield from self._prune("prune_keys")
        ticks = yield from self._prune("prune_ticks", keep=kept(set_days, "keep_ticks_days"))
        rollups = yield from self._prune("prune_rollups", keep=kept(set_days, "keep_rollups_days"))
        workers = yield self._query("prune_workers", keep=DEFAULTS.keep_workers)
        as_long = DEFAULTS.keep_operations
        yield from self._prune("prune_operation_items", keep=as_long)
        operations = yield from self._prune("prune_operations", keep=as_long)
        answers = yield from self._prune("prune_answers", keep=DEFAULTS.keep_answers)
        yield from self._prune("prune_sessions", keep=DEFAULTS.keep_sessions)
        yield from self._prune("prune_codes")
        yield from self._prune("prune_notice_groups", keep=DEFAULTS.keep_notice_groups)
        return MaintenanceReport(
            done, left, failed, keys, len(workers), ticks, operations, answers, rollups
        )

    def clear(self) -> Op[None]:
        """Remove everything except the schema itself, for tests."""
        plan = yield self._query("plan_clear", schema=self.schema)
        yield RawSql("; ".join(row["statement"] for row in plan))

    def planned(
        self,
        set_days: Mapping[str, Json],
        *,
        ahead: int = DAYS_AHEAD,
        patience: timedelta = timedelta(0),
    ) -> Op[Rows]:
        """Return the maintenance steps in order. `patience` extends the retention."""
        return (
            yield self._query(
                "plan_partitions",
                ahead=ahead,
                archive_days=(kept(set_days, "keep_archive_days") + patience).days,
                attempt_days=(kept(set_days, "keep_attempts_days") + patience).days,
            )
        )

    def _partitions(self, set_days: Mapping[str, Json]) -> Op[tuple[list[str], list[str]]]:
        plan = yield from self.planned(set_days)
        done: list[str] = []
        left: list[str] = []
        stuck: set[tuple[str, date]] = set()
        for row in plan:
            statement, place = row["statement"], (row["parent"], row["day"])
            if place in stuck:
                # Dropping a day that is still attached would lock the parent, and every settle
                # behind it.
                continue
            try:
                if "DETACH" in statement and row["parent"] == "job_archive":
                    yield from self._prune_items(row["day"])
                yield RawSql(statement)
            except QueryFailed as error:
                if error.sqlstate not in _BENIGN:
                    raise
                stuck.add(place)
                left.append(f"{statement}: {error}")
            else:
                done.append(statement)
        return done, left

    def _prune_items(self, day: date) -> Op[None]:
        """Delete the items of a day's archived jobs, one id range at a time."""
        after = 0
        while rows := (yield self._query("prune_items", day=day, after=after, count=10 * _BATCH)):
            after = rows[0]["id"]

    def _prune(self, verb: str, **params: object) -> Op[int]:
        """Delete in bounded batches until one isn't full."""
        pruned = 0
        for _ in range(_ROUNDS):
            rows = yield self._query(verb, count=_BATCH, **params)
            pruned += len(rows)
            if len(rows) < _BATCH:
                break
        return pruned


def kept(set_days: Mapping[str, Json], name: str) -> timedelta:
    """Return a retention period as set at run time, or its default."""
    builtin = {
        "keep_archive_days": DEFAULTS.keep_archive,
        "keep_attempts_days": DEFAULTS.keep_attempts,
        "keep_failed_days": DEFAULTS.keep_failed,
        "keep_ticks_days": DEFAULTS.keep_ticks,
        "keep_rollups_days": DEFAULTS.keep_rollups,
    }
    return timedelta(days=set_days[name]) if name in set_days else builtin[name]
