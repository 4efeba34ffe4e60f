"""What people and the doctor look at beside jobs: leases, queues minute by minute, schedules, the
server, schema drift, grants. Each look is bounded."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from tenure._model.diagnostics import (
    FindingCode,
    LockedJob,
    NotifyQueue,
    OverdueMaintenance,
    SchemaDrift,
    ServerInfo,
    ServerSetting,
    VacuumIssues,
)
from tenure._model.ids import JobId, WorkerId
from tenure._model.job import State
from tenure._model.lease import LeaseRow
from tenure._model.overview import Durability, History, System
from tenure._model.schedule import RecentRuns
from tenure._model.stats import COUNTED, QueueThroughput, Throughput
from tenure._rules.stats import MINUTE
from tenure._store.postgres.maintenance import MaintenanceQueries, kept
from tenure._store.postgres.overview import OverviewQueries
from tenure._store.postgres.roles import GRANTS, ROLES
from tenure._store.postgres.rows import tick_row
from tenure._store.postgres.schema import ExpectedSchema, expected_schema
from tenure._store.postgres.settings import SettingQueries
from tenure._store.postgres.statements import QueryBase
from tenure._store.steps import Op, Row, Rows

if TYPE_CHECKING:
    from datetime import datetime

    from tenure._model.schedule import TickRow


_SETTINGS = ("fsync", "full_page_writes", "synchronous_commit", "autovacuum", "track_counts")
_RIGHT = re.compile(r"(\w+)(?: \(([^)]*)\))?")
# Whoever has no name of ours runs workers.
_ANYBODY = "worker"
# Upkeep is tried every hour, and gives way to readers.
_PATIENCE = timedelta(days=2)
# Autovacuum comes to the table of jobs after 1,000; by then it is far behind.
_DEAD = 20_000
_HOLDERS = 5


@dataclass(eq=False)
class InspectionQueries(QueryBase):
    """The part of the store that is looked at, by people and by the doctor."""

    overview: OverviewQueries
    settings: SettingQueries
    maintenance: MaintenanceQueries

    def server_info(self) -> Op[ServerInfo]:
        """What an operator should know of the server: version, role, settings, its clock."""
        [row] = yield self._query("server_info")
        settings = yield self._query("server_settings", names=list(_SETTINGS))
        found = {each["name"]: ServerSetting(each["value"], each["source"]) for each in settings}
        return ServerInfo(**row, settings=found)

    def rights(self, role: str) -> Op[Sequence[str]]:
        """The statements that grant this role what its programs need and it does not have."""
        named = {f"{self.schema}_{kind}": kind for kind in ROLES}.get(role, _ANYBODY)
        # The owner has all of it by owning it; what a server needs is the most that is granted.
        kind = "server" if named == "owner" else named
        asked = [
            (thing, column, right)
            for thing, granted in GRANTS.items()
            for right, columns in _RIGHT.findall(granted.get(kind, ""))
            for column in (columns.split(", ") if columns else [""])
        ]
        rows = yield self._query(
            "missing_grants",
            schema=self.schema,
            things=[thing.rpartition(" ")[2] for thing, _, _ in asked],
            columns=[column for _, column, _ in asked],
            rights=[right for _, _, right in asked],
        )
        return list(self._grants(rows, role))

    def _grants(self, rows: Rows, role: str) -> Iterator[str]:
        places = {thing.rpartition(" ")[2]: thing for thing in GRANTS}
        for row in rows:
            kind, _, thing = places.get(row["thing"], "").rpartition(" ")
            column = f" ({row['column']})" if row["column"] else ""
            place = f"{kind} {self.schema}.{thing}".strip() if thing else f"SCHEMA {self.schema}"
            yield f"GRANT {row['right']}{column} ON {place} TO {role}"

    def schema_drift(self) -> Op[Sequence[SchemaDrift]]:
        """Where the schema is not as this release has it."""
        rows = yield self._query("actual_schema", schema=self.schema)
        drawn = expected_schema(self.schema)
        there = {(row["kind"], row["of"], row["name"]) for row in rows}
        found = [*self._missing(drawn, there), *self._without_index(drawn, there)]
        invalid = [(row["of"], row["name"]) for row in rows if not row["valid"]]
        return [*found, *self._invalid(drawn, invalid)]

    def _missing(
        self, drawn: ExpectedSchema, there: set[tuple[str, str, str]]
    ) -> Iterator[SchemaDrift]:
        for name, sql in drawn.sequences.items():
            if ("sequence", name, name) not in there:
                yield SchemaDrift(FindingCode.TABLE_MISSING, f"sequence {name} is missing", sql)
        for name, table in drawn.tables.items():
            if ("table", name, name) not in there:
                own = [index.sql for index in drawn.indexes.values() if index.table == name]
                sql = "; ".join([table.sql, *own])
                yield SchemaDrift(FindingCode.TABLE_MISSING, f"table {name} is missing", sql)
                continue
            alter = f"ALTER TABLE {self.schema}.{name} ADD"
            for column, sql in table.columns.items():
                if ("column", name, column) not in there:
                    what = f"column {column} of table {name} is missing"
                    yield SchemaDrift(FindingCode.COLUMN_MISSING, what, f"{alter} COLUMN {sql}")
            for constraint, sql in table.constraints.items():
                if ("constraint", name, constraint) not in there:
                    what = f"constraint {constraint} of table {name} is missing"
                    yield SchemaDrift(FindingCode.CONSTRAINT_MISSING, what, f"{alter} {sql}")

    def _without_index(
        self, drawn: ExpectedSchema, there: set[tuple[str, str, str]]
    ) -> Iterator[SchemaDrift]:
        for name, index in drawn.indexes.items():
            if ("table", index.table, index.table) not in there:
                continue
            if ("index", index.table, name) not in there:
                what = f"index {name} of table {index.table} is missing"
                yield SchemaDrift(FindingCode.INDEX_MISSING, what, _gently(drawn, name))

    def _invalid(
        self, drawn: ExpectedSchema, found: Sequence[tuple[str, str]]
    ) -> Iterator[SchemaDrift]:
        for table, name in found:
            what = f"index {name} of table {table} is not valid"
            index = drawn.indexes.get(name)
            if index is not None and drawn.tables[index.table].partitioned:
                sql = f"DROP INDEX {self.schema}.{name}; {index.sql}"
            elif name.endswith(("_ccnew", "_ccold")):
                sql = f"DROP INDEX CONCURRENTLY {self.schema}.{name}"
            else:
                sql = f"REINDEX INDEX CONCURRENTLY {self.schema}.{name}"
            yield SchemaDrift(FindingCode.INDEX_INVALID, what, sql)

    def overdue_maintenance(self) -> Op[OverdueMaintenance]:
        """What upkeep should have done by now."""
        set_days = yield from self.settings.changed()
        rows = yield from self.maintenance.planned(set_days, ahead=1, patience=_PATIENCE)
        missing = {row["day"] for row in rows if row["step"] <= 2}
        past = {row["day"] for row in rows if row["step"] > 2}
        return OverdueMaintenance(sorted(missing), sorted(past))

    def notify_queue(self) -> Op[NotifyQueue]:
        """How full the server's queue of notifications is."""
        [row] = yield self._query("notify_queue")
        return NotifyQueue(**row)

    def locked(
        self, queues: Sequence[str], older_than: timedelta, *, count: int
    ) -> Op[Sequence[LockedJob]]:
        """Jobs of these queues that have been due for longer than this and that claims pass over,
        because a transaction as old has their row locked."""
        rows = yield self._query("locked", queues=list(queues), older_than=older_than, count=count)
        return [
            LockedJob(JobId(row["id"]), row["queue"], row["pid"], row["application"], row["since"])
            for row in rows
        ]

    def vacuum_issues(self) -> Op[VacuumIssues]:
        """Which of our tables are not vacuumed as they should be."""
        off = [row["name"] for row in (yield self._query("vacuum_issues"))]
        tables = yield self._query("tables")
        dead = {
            row["name"]: row["dead_rows"]
            for row in tables
            if row["dead_rows"] >= max(_DEAD, row["live_rows"])
        }
        return VacuumIssues(off, dead)

    def leases(
        self, *, worker: WorkerId | None = None, queue: str | None = None, count: int = 100
    ) -> Op[Sequence[LeaseRow]]:
        """Leases of running jobs, those that end first before others."""
        rows = yield self._query("leases", worker=worker, queue=queue, most=COUNTED, count=count)
        return [_lease(row) for row in rows]

    def throughput(self, queues: Sequence[str], *, minutes: int = 30) -> Op[Throughput]:
        """What ended in each of these queues over the last minutes, from the counts per minute."""
        [at] = yield self._query("rollup_progress")
        until: datetime = at["now"].replace(second=0, microsecond=0)
        since = until - minutes * MINUTE
        rows = yield self._query("queue_minutes", queues=list(queues), since=since)
        counted = {name: ([0] * minutes, [0] * minutes) for name in queues}
        for row in rows:
            completed, failed = counted[row["queue"]]
            if (nth := (row["minute"] - since) // MINUTE) < minutes:
                completed[nth], failed[nth] = row["completed"], row["failed"]
        paces = {name: QueueThroughput(*both) for name, both in counted.items()}
        return Throughput(since, until, at["counted_until"], paces)

    def recent_runs(self, names: Sequence[str], *, count: int = 20) -> Op[Mapping[str, RecentRuns]]:
        """What each of these schedules came to."""
        ticks: dict[str, list[TickRow]] = {name: [] for name in names}
        for row in (yield self._query("last_ticks", names=list(names), count=count)):
            ticks[row["schedule"]].append(tick_row(row))
        last = {
            name: next((tick.job_id for tick in of if tick.job_id is not None), None)
            for name, of in ticks.items()
        }
        ids = [job_id for job_id in last.values() if job_id is not None]
        rows = (yield self._query("job_states", ids=ids)) if ids else []
        states = {JobId(row["id"]): State(row["state"]) for row in rows}
        return {
            name: RecentRuns(of, None if (job_id := last[name]) is None else states.get(job_id))
            for name, of in ticks.items()
        }

    def system(self) -> Op[System]:
        """What the installation stands on: the server, its durability, history and its keepers."""
        server = yield from self.server_info()
        [standbys] = yield self._query("standbys")
        holders = yield from self.overview.holders(count=_HOLDERS)
        set_days = yield from self.settings.changed()
        keeps = {
            "job_archive": kept(set_days, "keep_archive_days"),
            "attempt": kept(set_days, "keep_attempts_days"),
        }
        histories = yield self._query("partition_stats")
        return System(
            version=server.version,
            role=server.role,
            durability=Durability(
                fsync=server.settings["fsync"].value == "on",
                full_page_writes=server.settings["full_page_writes"].value == "on",
                synchronous_commit=server.settings["synchronous_commit"].value,
                standby_names=standbys["names"],
                standbys=standbys["connected"],
            ),
            holders=holders,
            histories=[History(**row, keep=keeps[row["name"]]) for row in histories],
        )


def _lease(row: Row) -> LeaseRow:
    return LeaseRow(
        job_id=JobId(row["id"]),
        queue=row["queue"],
        task=row["task"],
        attempt=row["attempt"],
        max_attempts=row["max_attempts"],
        worker=WorkerId(row["claimed_by"]),
        claimed_at=row["claimed_at"],
        expires_at=row["lease_expires_at"],
        length=row["length"],
        remaining=row["remaining"],
        renewals=row["renewals"],
        cancel_requested=row["cancel_requested"],
    )


def _gently(drawn: ExpectedSchema, name: str) -> str:
    """The statement that makes an index while work goes on, where there is one."""
    index = drawn.indexes[name]
    if drawn.tables[index.table].partitioned:
        return index.sql
    return index.sql.replace(f"INDEX {name}", f"INDEX CONCURRENTLY {name}", 1)
