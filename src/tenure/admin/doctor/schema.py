"""The schema's tables: as they should be, with the rights they need, kept and vacuumed."""

from collections.abc import Sequence

from tenure._model.diagnostics import (
    Finding,
    FindingCode,
    Level,
    OverdueMaintenance,
    SchemaDrift,
    ServerInfo,
    VacuumIssues,
)
from tenure._model.overview import HorizonHolder
from tenure._rules.alerts import dead_rows, matters
from tenure.admin.doctor.findings import Findings, fine, in_sql, problem, run, warning
from tenure.admin.doctor.server import switched_on

_WHY = {
    FindingCode.TABLE_MISSING: "what needs it is refused by the database",
    FindingCode.COLUMN_MISSING: "what needs it is refused by the database",
    FindingCode.CONSTRAINT_MISSING: (
        "nothing keeps out rows that cannot be, or that are there already"
    ),
    FindingCode.INDEX_MISSING: "statements that need it read a whole table each time",
    FindingCode.INDEX_INVALID: (
        "it is written and never read; statements that need it read a whole table"
    ),
}
# Without these the looks that follow would be refused.
BROKEN = frozenset({FindingCode.TABLE_MISSING, FindingCode.COLUMN_MISSING})
_NAMED = 3


def drift(found: Sequence[SchemaDrift], version: int) -> Findings:
    """Where the schema is not as this release has it."""
    for each in found:
        yield problem("schema", each.fault, each.what, _WHY[each.fault], in_sql(each.sql))
    if not found:
        yield fine("schema", f"version {version} fits this release, and nothing is missing")


def rights(grants: Sequence[str], role: str) -> Findings:
    """Whether this role can do what its programs need."""
    if grants:
        yield problem(
            "privileges",
            FindingCode.RIGHTS_MISSING,
            f"role {role} lacks {len(grants)} of the rights that it needs",
            "what needs them is refused by the database",
            in_sql(*grants),
        )
    else:
        yield fine("privileges", f"role {role} can do what it needs to")


def upkeep(late: OverdueMaintenance) -> Findings:
    """Whether days are made ahead and dropped behind."""
    for days, fault, what, why in (
        (
            late.missing,
            FindingCode.PARTITION_MISSING,
            "there is no partition for",
            "what ends on that day is filed under the newest day there is",
        ),
        (
            late.past,
            FindingCode.PARTITION_PAST,
            "past their retention and still there are",
            "history that nobody needs takes room: upkeep does not run as the tables' owner",
        ),
    ):
        if days:
            named = ", ".join(f"{day}" for day in days[:_NAMED])
            more = f" and {len(days) - _NAMED} more" if len(days) > _NAMED else ""
            todo = run("tenure db maintain")
            yield problem("retention", fault, f"{what} {named}{more}", why, todo)
    if not late.missing and not late.past:
        yield fine("retention", "days are made ahead and dropped behind")


def vacuum(server: ServerInfo, unkept: VacuumIssues, schema: str) -> Findings:
    """Whether dead rows are removed."""
    off = [n for n in ("autovacuum", "track_counts") if server.settings[n].value == "off"]
    for name in off:
        yield problem(
            "vacuum",
            FindingCode.AUTOVACUUM_OFF,
            f"{name} is off",
            "no dead row is ever removed: the table of jobs grows, and claims become slow",
            switched_on(server, name, server.settings[name]),
        )
    for table in unkept.off:
        yield problem(
            "vacuum",
            FindingCode.TABLE_NOT_VACUUMED,
            f"autovacuum is switched off for table {table}",
            "its dead rows are never removed: it grows, and what reads it becomes slow",
            in_sql(f"ALTER TABLE {schema}.{table} RESET (autovacuum_enabled)"),
        )
    for table, count in unkept.dead.items():
        yield warning(
            "vacuum",
            FindingCode.DEAD_ROWS,
            f"table {table} has {count:,} dead rows",
            "autovacuum does not keep up, or is kept from it: what reads the table becomes slow",
            in_sql(f"VACUUM {schema}.{table}"),
        )
    if not (off or unkept.off or unkept.dead):
        yield fine("vacuum", "dead rows are removed")


def horizon(holders: Sequence[HorizonHolder]) -> Findings:
    """Who keeps dead rows from being removed. A query that runs will end; nothing else need."""
    found = [holder for holder in holders if matters(holder)]
    for holder in found:
        said = dead_rows(holder)
        level = Level.WARNING if holder.state == "active" else Level.PROBLEM
        todo = in_sql(said.command) if said.in_sql else said.command
        why = "dead rows from then on are kept: tables grow, and claims become slow"
        yield Finding("horizon", level, said.who, why, todo, FindingCode.HORIZON_HELD)
    if not found:
        yield fine("horizon", "nobody keeps dead rows from being removed")
