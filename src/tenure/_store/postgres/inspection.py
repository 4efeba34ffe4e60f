"""Facts for people and for `tenure doctor`: leases, throughput, schedules, server, schema."""

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
    RoleSetting,
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
from tenure._store.postgres.roles import GRANTS, ROLES, SETTINGS, WORKER_POLICY
from tenure._store.postgres.rows import tick_row
from tenure._store.postgres.schema import ExpectedSchema, definition, expected_schema
from tenure._store.postgres.settings import SettingQueries
from tenure._store.postgres.statements import QueryBase
from tenure._store.steps import Op, Row, Rows

if TYPE_CHECKING:
    from datetime import datetime

    from tenure._model.schedule import TickRow


_SETTINGS = (
    *("fsync", "full_page_writes", "synchronous_commit", "autovacuum", "track_counts"),
    *("log_statement", "log_min_duration_statement", "log_min_duration_sample"),
    *("log_parameter_max_length", "log_parameter_max_length_on_error"),
)
# Role settings that don't change any result or cancel any statement.
_HARMLESS = ("application_name", "log_", "timezone")
_RIGHT = re.compile(r"(\w+)(?: \(([^)]*)\))?")
# A role without one of our names is assumed to run workers.
_DEFAULT_ROLE = "worker"
# Maintenance runs hourly and yields to readers.
_PATIENCE = timedelta(days=2)
# Autovacuum processes the job table after 1,000 dead rows. At this number, it is far behind.
_DEAD = 20_000
_HOLDERS = 5


@dataclass(eq=False)
class InspectionQueries(QueryBase):
    overview: OverviewQueries
    settings: SettingQueries
    maintenance: MaintenanceQueries

    def server_info(self) -> Op[ServerInfo]:
        [row] = yield self._query("server_info")
        rows = yield self._query("server_settings", names=list(_SETTINGS))
        settings = {each["name"]: ServerSetting(each["value"], each["source"]) for each in rows}
        return ServerInfo(**row, settings=settings)

    def rights(self, role: str) -> Op[Sequence[str]]:
        """Return statements that grant the privileges the role's programs need but don't have."""
        named = {f"{self.schema}_{kind}": kind for kind in ROLES}.get(role, _DEFAULT_ROLE)
        # The owner has every privilege anyway. Of the granted roles, the server role has the most.
        kind = "server" if named == "owner" else named
        needed = list(_granted(kind))
        rows = yield self._query(
            "missing_grants",
            schema=self.schema,
            things=[thing.rpartition(" ")[2] for thing, _, _ in needed],
            columns=[column for _, column, _ in needed],
            rights=[right for _, _, right in needed],
        )
        return list(self._grants(rows, role))

    def _grants(self, rows: Rows, role: str) -> Iterator[str]:
        places = {thing.rpartition(" ")[2]: thing for thing in GRANTS}
        for row in rows:
            kind, _, thing = places.get(row["thing"], "").rpartition(" ")
            column = f" ({row['column']})" if row["column"] else ""
            place = f"{kind} {self.schema}.{thing}".strip() if thing else f"SCHEMA {self.schema}"
            yield f"GRANT {row['right']}{column} ON {place} TO {role}"

    def excess_rights(self) -> Op[Mapping[str, Sequence[str]]]:
        """Return the privileges that our roles and PUBLIC have beyond what we grant, by role."""
        named = {f"{self.schema}_{kind}": kind for kind in ROLES[1:]}
        rows = yield self._query(
            "role_rights",
            schema=self.schema,
            roles=list(named),
            worker=f"{self.schema}_worker",
            policy=WORKER_POLICY,
        )
        ours = {
            (role, thing.rpartition(" ")[2], column, right)
            for role, kind in named.items()
            for thing, column, right in _granted(kind)
        }
        excess: dict[str, list[str]] = {}
        for row in rows:
            role, thing, column, right = row["role"], row["thing"], row["column"], row["right"]
            if (role, thing, column, right) not in ours:
                place = f"{thing} ({column})" if column else thing
                excess.setdefault(role, []).append(f"{right} {place}".strip())
        return excess

    def role_settings(self) -> Op[Sequence[RoleSetting]]:
        """Return the settings of our roles that were not made by `tenure db roles`."""
        ours = {
            (f"{self.schema}_{kind}", name, value)
            for kind, settings in SETTINGS.items()
            for name, value in settings.items()
        }
        rows = yield self._query("role_settings", roles=[f"{self.schema}_{kind}" for kind in ROLES])
        return [
            RoleSetting(**row)
            for row in rows
            if (row["role"], row["name"], row["value"]) not in ours
            and not row["name"].lower().startswith(_HARMLESS)
        ]

    def schema_drift(self) -> Op[Sequence[SchemaDrift]]:
        """Return the differences from this release's schema."""
        rows = yield self._query("actual_schema", schema=self.schema)
        expected = expected_schema(self.schema)
        actual = {(row["kind"], row["of"], row["name"]) for row in rows}
        drift = [*self._missing(expected, actual), *self._without_index(expected, actual)]
        invalid = [(row["of"], row["name"]) for row in rows if not row["valid"]]
        functions = yield self._query("actual_functions", schema=self.schema)
        return [*drift, *self._invalid(expected, invalid), *_other_functions(expected, functions)]

    def _missing(
        self, expected: ExpectedSchema, actual: set[tuple[str, str, str]]
    ) -> Iterator[SchemaDrift]:
        for name, sql in expected.sequences.items():
            if ("sequence", name, name) not in actual:
                yield SchemaDrift(FindingCode.TABLE_MISSING, f"sequence {name} is missing", sql)
        for name, table in expected.tables.items():
            if ("table", name, name) not in actual:
                own = [index.sql for index in expected.indexes.values() if index.table == name]
                sql = "; ".join([table.sql, *own])
                yield SchemaDrift(FindingCode.TABLE_MISSING, f"table {name} is missing", sql)
                continue
            alter = f"ALTER TABLE {self.schema}.{name} ADD"
            for column, sql in table.columns.items():
                if ("column", name, column) not in actual:
                    what = f"column {column} of table {name} is missing"
                    yield SchemaDrift(FindingCode.COLUMN_MISSING, what, f"{alter} COLUMN {sql}")
            for constraint, sql in table.constraints.items():
                if ("constraint", name, constraint) not in actual:
                    what = f"constraint {constraint} of table {name} is missing"
                    yield SchemaDrift(FindingCode.CONSTRAINT_MISSING, what, f"{alter} {sql}")

    def _without_index(
        self, expected: ExpectedSchema, actual: set[tuple[str, str, str]]
    ) -> Iterator[SchemaDrift]:
        for name, index in expected.indexes.items():
            if ("table", index.table, index.table) not in actual:
                continue
            if ("index", index.table, name) not in actual:
                what = f"index {name} of table {index.table} is missing"
                yield SchemaDrift(FindingCode.INDEX_MISSING, what, _gently(expected, name))

    def _invalid(
        self, expected: ExpectedSchema, indexes: Sequence[tuple[str, str]]
    ) -> Iterator[SchemaDrift]:
        for table, name in indexes:
            what = f"index {name} of table {table} is not valid"
            index = expected.indexes.get(name)
            if index is not None and expected.tables[index.table].partitioned:
                sql = f"DROP INDEX {self.schema}.{name}; {index.sql}"
            elif name.endswith(("_ccnew", "_ccold")):
                sql = f"DROP INDEX CONCURRENTLY {self.schema}.{name}"
            else:
                sql = f"REINDEX INDEX CONCURRENTLY {self.schema}.{name}"
            yield SchemaDrift(FindingCode.INDEX_INVALID, what, sql)

    def overdue_maintenance(self) -> Op[OverdueMaintenance]:
        set_days = yield from self.settings.changed()
        rows = yield from self.maintenance.planned(set_days, ahead=1, patience=_PATIENCE)
        missing = {row["day"] for row in rows if row["step"] <= 2}
        past = {row["day"] for row in rows if row["step"] > 2}
        return OverdueMaintenance(sorted(missing), sorted(past))

    def notify_queue(self) -> Op[NotifyQueue]:
        [row] = yield self._query("notify_queue")
        return NotifyQueue(**row)

    def locked(
        self, queues: Sequence[str], older_than: timedelta, *, count: int
    ) -> Op[Sequence[LockedJob]]:
        """Return due jobs that claims keep skipping because their rows are locked.

        A job is included if it has been due, and its row has been locked, for longer than
        `older_than`.
        """
        rows = yield self._query("locked", queues=list(queues), older_than=older_than, count=count)
        return [
            LockedJob(JobId(row["id"]), row["queue"], row["pid"], row["application"], row["since"])
            for row in rows
        ]

    def vacuum_issues(self) -> Op[VacuumIssues]:
        """Return our tables that aren't being vacuumed properly."""
        off = [row["name"] for row in (yield self._query("vacuum_issues"))]
        tables = yield self._query("tables")
        dead = {
            row["name"]: row["dead_rows"]
            for row in tables
            if row["dead_rows"] >= max(_DEAD, row["live_rows"])
        }
        return VacuumIssues(off, dead)

    def leases(
        self,
        *,
        worker: WorkerId | None = None,
        queue: str | None = None,
        count: int = 100,
        granted: Sequence[str] | None = None,
    ) -> Op[Sequence[LeaseRow]]:
        """Return running jobs' leases, soonest to expire first."""
        of = {"worker": worker, "queue": queue, "granted": granted}
        rows = yield self._query("leases", **of, most=COUNTED, count=count)
        return [_lease(row) for row in rows]

    def throughput(self, queues: Sequence[str], *, minutes: int = 30) -> Op[Throughput]:
        """Return these queues' throughput over the last minutes, from the rollups."""
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
        """Return each schedule's last ticks and its last job's state."""
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
        """Return facts about the server, its durability and the history."""
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


def _granted(kind: str) -> Iterator[tuple[str, str, str]]:
    """Yield a role's privileges, each with its table or sequence and its column, if any."""
    for thing, rights in GRANTS.items():
        for right, columns in _RIGHT.findall(rights.get(kind, "")):
            for column in columns.split(", ") if columns else [""]:
                yield thing, column, right


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


def _other_functions(expected: ExpectedSchema, rows: Rows) -> Iterator[SchemaDrift]:
    """Yield the functions that are missing or differ in more than comments and whitespace."""
    names = {row["name"] for row in rows}
    actual = {
        (row["name"], definition(row["parameters"], row["options"], row["body"])) for row in rows
    }
    for name, function in expected.functions.items():
        if name not in names:
            what = f"function {name} is missing"
            yield SchemaDrift(FindingCode.FUNCTION_MISSING, what, function.sql)
        elif (name, function.definition) not in actual:
            what = f"function {name} differs from this release's"
            yield SchemaDrift(FindingCode.FUNCTION_CHANGED, what, function.sql)


def _gently(expected: ExpectedSchema, name: str) -> str:
    """Return the statement that creates an index, without blocking writes if possible."""
    index = expected.indexes[name]
    if expected.tables[index.table].partitioned:
        return index.sql
    return index.sql.replace(f"INDEX {name}", f"INDEX CONCURRENTLY {name}", 1)
