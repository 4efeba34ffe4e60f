"""Check the schema: its tables, privileges, partitions and vacuum."""

from collections.abc import Mapping, Sequence

from tenure._model.diagnostics import (
    Finding,
    FindingCode,
    Level,
    OverdueMaintenance,
    RoleSetting,
    SchemaDrift,
    ServerInfo,
    VacuumIssues,
)
from tenure._model.overview import HorizonHolder
from tenure._rules.alerts import dead_rows, matters
from tenure._rules.formatting import counted
from tenure.admin.doctor.findings import Findings, fine, in_sql, problem, run, warning
from tenure.admin.doctor.server import switched_on

_WHY = {
    FindingCode.TABLE_MISSING: "statements that use it fail",
    FindingCode.COLUMN_MISSING: "statements that use it fail",
    FindingCode.CONSTRAINT_MISSING: "invalid or duplicate rows are not rejected",
    FindingCode.INDEX_MISSING: "statements that need it scan a whole table each time",
    FindingCode.INDEX_INVALID: "it is written but never read: statements scan a whole table",
    FindingCode.FUNCTION_MISSING: "triggers and programs that call it fail",
    FindingCode.FUNCTION_CHANGED: "it may enqueue jobs that a worker cannot read, or none",
}
# Without these, the checks that follow would fail.
BROKEN = frozenset({FindingCode.TABLE_MISSING, FindingCode.COLUMN_MISSING})
_NAMED = 3


def drift(drifts: Sequence[SchemaDrift], version: int) -> Findings:
    """Report where the schema differs from what this release expects."""
    for each in drifts:
        yield problem("schema", each.fault, each.what, _WHY[each.fault], in_sql(each.sql))
    if not drifts:
        yield fine("schema", f"version {version} fits this release and is complete")


def rights(grants: Sequence[str], role: str) -> Findings:
    """Check this role's privileges."""
    if grants:
        yield problem(
            "privileges",
            FindingCode.RIGHTS_MISSING,
            f"role {role} lacks {counted(len(grants), 'privilege', 'privileges')}",
            "statements that need them fail",
            in_sql(*grants),
        )
    else:
        yield fine("privileges", f"role {role} has all privileges that it needs")


def excess(rights: Mapping[str, Sequence[str]]) -> Findings:
    """Report what roles may do beyond what `tenure db roles` grants."""
    for role, wide in rights.items():
        named = ", ".join(wide[:_NAMED])
        more = f" and {len(wide) - _NAMED} more" if len(wide) > _NAMED else ""
        grantee = "every role (PUBLIC)" if role == "PUBLIC" else f"role {role}"
        yield warning(
            "privileges",
            FindingCode.RIGHTS_TOO_WIDE,
            f"{grantee} has more privileges than it needs: {named}{more}",
            "a program with this role can stop a queue, block audited actions or change history",
            "run the output of tenure db roles as a superuser: tenure db roles | psql",
        )


def role_settings(settings: Sequence[RoleSetting], database: str) -> Findings:
    """Report settings that change how every new session of a role behaves."""
    for each in settings:
        where = f" IN DATABASE {database}" if each.here else ""
        yield warning(
            "privileges",
            FindingCode.ROLE_SETTING,
            f"sessions of role {each.role} start with {each.name} = {each.value}",
            "a role can change its own settings, and they outlast the session: statements may "
            "time out or behave differently",
            in_sql(f"ALTER ROLE {each.role}{where} RESET {each.name}"),
        )


def upkeep(late: OverdueMaintenance) -> Findings:
    """Check that daily partitions are created ahead of time and dropped after their retention."""
    for days, fault, what, why in (
        (
            late.missing,
            FindingCode.PARTITION_MISSING,
            "no partition exists for",
            "jobs that end on that day go into the newest partition",
        ),
        (
            late.past,
            FindingCode.PARTITION_PAST,
            "these partitions are past their retention:",
            "expired history takes space: no maintenance runs as the owner of the tables",
        ),
    ):
        if days:
            named = ", ".join(f"{day}" for day in days[:_NAMED])
            more = f" and {len(days) - _NAMED} more" if len(days) > _NAMED else ""
            todo = run("tenure db maintain")
            yield problem("retention", fault, f"{what} {named}{more}", why, todo)
    if not late.missing and not late.past:
        yield fine("retention", "partitions are created ahead and dropped after their retention")


def vacuum(server: ServerInfo, unkept: VacuumIssues, schema: str) -> Findings:
    """Check that autovacuum removes dead rows."""
    off = [n for n in ("autovacuum", "track_counts") if server.settings[n].value == "off"]
    for name in off:
        yield problem(
            "vacuum",
            FindingCode.AUTOVACUUM_OFF,
            f"{name} is off",
            "dead rows are never removed: the job table grows, and claims get slow",
            switched_on(server, name, server.settings[name]),
        )
    for table in unkept.off:
        yield problem(
            "vacuum",
            FindingCode.TABLE_NOT_VACUUMED,
            f"autovacuum is off for table {table}",
            "its dead rows are never removed: the table grows, and reading it gets slow",
            in_sql(f"ALTER TABLE {schema}.{table} RESET (autovacuum_enabled)"),
        )
    for table, count in unkept.dead.items():
        yield warning(
            "vacuum",
            FindingCode.DEAD_ROWS,
            f"table {table} has {count:,} dead rows",
            "autovacuum does not keep up, or something blocks it: reading the table gets slow",
            in_sql(f"VACUUM {schema}.{table}"),
        )
    if not (off or unkept.off or unkept.dead):
        yield fine("vacuum", "autovacuum removes dead rows")


def horizon(holders: Sequence[HorizonHolder]) -> Findings:
    """Report what keeps dead rows from being removed.

    A running query is only a warning, because it will end on its own.
    """
    lasting = [holder for holder in holders if matters(holder)]
    for holder in lasting:
        described = dead_rows(holder)
        level = Level.WARNING if holder.state == "active" else Level.PROBLEM
        todo = in_sql(described.command) if described.in_sql else described.command
        why = "vacuum cannot remove newer dead rows: tables grow, and claims get slow"
        what = f"dead rows are kept: {described.who}"
        yield Finding("horizon", level, what, why, todo, FindingCode.HORIZON_HELD)
    if not lasting:
        yield fine("horizon", "no transaction keeps vacuum from removing dead rows")
