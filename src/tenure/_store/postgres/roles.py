"""Database roles: one for each kind of program, with the privileges its statements need."""

from collections.abc import Mapping

from tenure._store.postgres.statements import check_schema

ROLES = ("owner", "server", "worker", "producer", "reader")
_READ = "SELECT"
_KEEP = "SELECT, INSERT, UPDATE"
_ALL = "SELECT, INSERT, UPDATE, DELETE"
# A role that could choose ids could take ids that belong to others. So where a role only adds rows,
# it may write only the columns that its statements write, and the sequence assigns the id. The same
# applies to the time of an audit row. A column privilege also doesn't allow LOCK TABLE.
_NEW_JOB = (
    "INSERT (queue, task, key, key_for, args, priority, created_at, run_at, max_attempts, "
    "max_losses, lease, target, meta, held)"
)
_NEW_AUDIT = "INSERT (actor, source, action, target, reason, before, after, address)"
_KEYS = "SELECT, INSERT (task, key, job_id), UPDATE (hits, job_id, expires_at)"
_CHUNK = "UPDATE (state, done, chunk_limit, waiting, outcomes, started_at, ended_at, next_at)"

# Privileges by table and role. The owner has every privilege anyway. Columns in parentheses
# restrict a privilege to those columns. A role may lock a row if it may update one of its columns.
GRANTS: Mapping[str, Mapping[str, str]] = {
    "schema_version": {"server": _READ, "worker": _READ, "producer": _READ, "reader": _READ},
    "job": {
        "server": _ALL,
        "worker": _ALL,
        "producer": f"SELECT (id), {_NEW_JOB}",
        "reader": _READ,
    },
    # Workers run operations' chunks, so they must be able to retry and delete jobs.
    "job_archive": {"server": _ALL, "worker": _ALL, "reader": _READ},
    "job_failed": {"server": _ALL, "worker": _ALL, "reader": _READ},
    "attempt": {
        "server": _ALL,
        "worker": "SELECT, INSERT, UPDATE (settle_repeats, refused_result, error_type, "
        "error_message, error_trace, error_signature, log)",
        "reader": _READ,
    },
    "job_item": {"server": _ALL, "worker": _ALL, "reader": _READ},
    "job_key": {"server": _ALL, "worker": f"{_KEYS}, DELETE", "producer": _KEYS, "reader": _READ},
    "queue": {
        "server": _ALL,
        "worker": "SELECT, UPDATE (adopted)",
        "producer": "SELECT (name, max_attempts)",
        "reader": _READ,
    },
    "worker": {
        "server": _ALL,
        "worker": "SELECT, INSERT, UPDATE (state, drain_requested, queues, slots, running, "
        "last_heartbeat_at, meta)",
        "reader": _READ,
    },
    "setting": {
        "server": _ALL,
        "worker": _READ,
        "producer": "SELECT (name, value)",
        "reader": _READ,
    },
    # A worker records which schedules its code declares. The server erases personal data.
    "audit": {
        "server": f"SELECT, {_NEW_AUDIT}, UPDATE (target, reason, before, after)",
        "worker": _NEW_AUDIT,
        "reader": _READ,
    },
    "schedule": {"server": _ALL, "worker": _KEEP, "reader": _READ},
    "schedule_tick": {
        "server": _ALL,
        "worker": "SELECT, INSERT, UPDATE (recorded_at, job_id, outcome, reason)",
        "reader": _READ,
    },
    "api_token": {
        "server": "SELECT, INSERT (name, hint, hash, scopes, queues, created_at, created_by, "
        "expires_at, created_by_token, tasks, quotas), "
        "UPDATE (last_used_at, revoked_at, revoked_by, quotas)",
        "reader": "SELECT (id, name, hint, scopes, queues, created_at, created_by, expires_at, "
        "last_used_at, revoked_at, revoked_by, created_by_token, tasks, quotas)",
    },
    "dashboard_session": {
        "server": _KEEP,
        "reader": "SELECT (id, name, provider, token_id, scopes, queues, created_at, seen_at, "
        "expires_at, idle, address, user_agent, ended_at, ended_by)",
    },
    "sign_in_code": {"server": "SELECT, INSERT, DELETE"},
    "idempotency": {"server": _ALL},
    "operation": {
        "server": "SELECT, INSERT (kind, state, filter, changes, rate, actor, source, reason, "
        f"created_at, next_at), {_CHUNK}, UPDATE (total, filter, reason)",
        "worker": f"SELECT, {_CHUNK}",
        "reader": _READ,
    },
    "operation_item": {
        "server": "SELECT, INSERT (operation_id, place, job_id, fire_at), UPDATE (job_id, outcome)",
        "worker": "SELECT, UPDATE (job_id, outcome)",
        "reader": _READ,
    },
    "rollup_minute": {"server": _KEEP, "worker": _KEEP, "reader": _READ},
    "rollup_state": {"server": _KEEP, "worker": _KEEP, "reader": _READ},
    "SEQUENCE job_id_seq": {
        "server": "SELECT, USAGE",
        "worker": "SELECT, USAGE",
        "producer": "USAGE",
        "reader": _READ,
    },
    # It runs with the caller's privileges, so it adds none.
    "FUNCTION enqueue": {"server": "EXECUTE", "worker": "EXECUTE", "producer": "EXECUTE"},
}

# The sources of the audit rows that a worker's programs write, for schedules that its code declares
# and for commands that handlers run through `app.admin`.
WORKER_SOURCES = ("code", "python")
WORKER_POLICY = "audit_worker_source"

_CREATE = """\
-- Create the roles (as a superuser). They have no password until you set one.
DO $$
BEGIN
{creates}
    IF NOT has_database_privilege('{owner}', current_database(), 'CREATE') THEN
        EXECUTE format('GRANT CREATE ON DATABASE %I TO {owner}', current_database());
    END IF;
END
$$;"""
_CREATE_ONE = """\
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = '{role}') THEN
        CREATE ROLE {role} LOGIN;{settings}
    END IF;"""
# A reader must not keep dead rows from being removed.
SETTINGS = {"reader": {"statement_timeout": "30s", "idle_in_transaction_session_timeout": "60s"}}
_OWN = """\
-- The role that migrates and maintains the tables and functions owns them.
DO $$
DECLARE
    found record;
BEGIN
    FOR found IN
        SELECT c.relname
        FROM pg_class AS c
        WHERE c.relnamespace = '{schema}'::regnamespace
            AND c.relkind IN ('r', 'p')
            AND c.relowner <> '{owner}'::regrole
    LOOP
        EXECUTE format('ALTER TABLE {schema}.%I OWNER TO {owner}', found.relname);
    END LOOP;
    FOR found IN
        SELECT p.oid::regprocedure AS name
        FROM pg_proc AS p
        WHERE p.pronamespace = '{schema}'::regnamespace AND p.proowner <> '{owner}'::regrole
    LOOP
        EXECUTE format('ALTER FUNCTION %s OWNER TO {owner}', found.name);
    END LOOP;
    IF '{owner}'::regrole <> (
        SELECT n.nspowner FROM pg_namespace AS n WHERE n.nspname = '{schema}'
    ) THEN
        ALTER SCHEMA {schema} OWNER TO {owner};
    END IF;
END
$$;"""

_REVOKE = """\
-- Revoke every right but the owner's, then grant what each role needs.
REVOKE ALL ON SCHEMA {schema} FROM PUBLIC, {others};
REVOKE ALL ON ALL TABLES IN SCHEMA {schema} FROM PUBLIC, {others};
REVOKE ALL ON ALL SEQUENCES IN SCHEMA {schema} FROM PUBLIC, {others};
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA {schema} FROM PUBLIC, {others};
ALTER DEFAULT PRIVILEGES FOR ROLE {owner} REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC;
GRANT USAGE ON SCHEMA {schema} TO {others};"""

_AUDIT = """\
-- A worker cannot write audit rows in the name of the command line, the server or its pages.
ALTER TABLE {schema}.audit ENABLE ROW LEVEL SECURITY;
DROP POLICY IF EXISTS audit_by_rights ON {schema}.audit;
CREATE POLICY audit_by_rights ON {schema}.audit USING (true) WITH CHECK (true);
DROP POLICY IF EXISTS {policy} ON {schema}.audit;
CREATE POLICY {policy} ON {schema}.audit AS RESTRICTIVE FOR INSERT TO {worker}
    WITH CHECK (source IN ({sources}));"""


def script(schema: str) -> str:
    """Return the SQL that creates a schema's roles and grants their privileges. It can be rerun."""
    check_schema(schema)
    names = {role: f"{schema}_{role}" for role in ROLES}
    others = ", ".join(names[role] for role in ROLES[1:])
    return "\n\n".join(
        [
            "BEGIN;\nSET LOCAL lock_timeout = '5s';",
            _CREATE.format(
                creates="\n".join(_create(role, name) for role, name in names.items()),
                owner=names["owner"],
            ),
            _OWN.format(schema=schema, owner=names["owner"]),
            _REVOKE.format(schema=schema, owner=names["owner"], others=others),
            *(_granted(schema, role, names[role]) for role in ROLES[1:]),
            _AUDIT.format(
                schema=schema,
                worker=names["worker"],
                policy=WORKER_POLICY,
                sources=", ".join(f"'{source}'" for source in WORKER_SOURCES),
            ),
            "COMMIT;\n",
        ]
    )


def _create(role: str, name: str) -> str:
    settings = "".join(
        f"\n        ALTER ROLE {name} SET {setting} = '{value}';"
        for setting, value in SETTINGS.get(role, {}).items()
    )
    return _CREATE_ONE.format(role=name, settings=settings)


def _granted(schema: str, role: str, name: str) -> str:
    lines = []
    for what, rights in GRANTS.items():
        if role in rights:
            kind, _, thing = what.rpartition(" ")
            place = f"{kind} {schema}.{thing}".strip()
            lines.append(f"GRANT {rights[role]} ON {place} TO {name};")
    return "\n".join([f"-- {role}", *lines])
