"""The database's roles: one for each kind of program, with the rights that its statements need.

Rows of partitions are reached through their parents, and only those are asked for rights: a
partition that is made later needs none of its own.
"""

from collections.abc import Mapping

from tenure._store.postgres.statements import check_schema

ROLES = ("owner", "server", "worker", "producer", "reader")
_READ = "SELECT"
_ADD = "SELECT, INSERT"
_KEEP = "SELECT, INSERT, UPDATE"
_ALL = "SELECT, INSERT, UPDATE, DELETE"

# By table and role; the owner has all of it by owning it. A column in parentheses is the right to
# that column alone; a row is locked by whoever may update one of its columns.
GRANTS: Mapping[str, Mapping[str, str]] = {
    "schema_version": {"server": _READ, "worker": _READ, "producer": _READ, "reader": _READ},
    "job": {"server": _ALL, "worker": _ALL, "producer": "SELECT (id), INSERT", "reader": _READ},
    # Workers do the chunks of operations: what these retry and delete, they must be able to.
    "job_archive": {"server": _ALL, "worker": _ALL, "reader": _READ},
    "job_failed": {"server": _ALL, "worker": _ALL, "reader": _READ},
    "attempt": {"server": _ALL, "worker": _KEEP, "reader": _READ},
    "job_item": {"server": _ALL, "worker": _ALL, "reader": _READ},
    "job_key": {"server": _ALL, "worker": _KEEP, "producer": _KEEP, "reader": _READ},
    "queue": {
        "server": _ALL,
        "worker": "SELECT, UPDATE (adopted)",
        "producer": "SELECT (name, max_attempts)",
        "reader": _READ,
    },
    "worker": {"server": _ALL, "worker": _KEEP, "reader": _READ},
    "setting": {
        "server": _ALL,
        "worker": _READ,
        "producer": "SELECT (name, value)",
        "reader": _READ,
    },
    # A worker notes which schedules its code declares.
    "audit": {"server": _ADD, "worker": "INSERT", "reader": _READ},
    "schedule": {"server": _ALL, "worker": _KEEP, "reader": _READ},
    "schedule_tick": {"server": _ALL, "worker": _KEEP, "reader": _READ},
    "api_token": {
        "server": _KEEP,
        "reader": "SELECT (id, name, hint, scopes, queues, created_at, created_by, expires_at, "
        "last_used_at, revoked_at, revoked_by)",
    },
    "idempotency": {"server": _KEEP},
    "operation": {"server": _KEEP, "worker": "SELECT, UPDATE", "reader": _READ},
    "operation_item": {"server": _KEEP, "worker": "SELECT, UPDATE", "reader": _READ},
    "rollup_minute": {"server": _KEEP, "worker": _KEEP, "reader": _READ},
    "rollup_state": {"server": _KEEP, "worker": _KEEP, "reader": _READ},
    "SEQUENCE job_id_seq": {
        "server": "SELECT, USAGE",
        "worker": "SELECT, USAGE",
        "producer": "USAGE",
        "reader": _READ,
    },
}

_CREATE = """\
-- Roles are made once, by a superuser; they cannot log in by a password before one is set.
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
# Whoever looks must not keep dead rows from being removed.
_SETTINGS = {"reader": {"statement_timeout": "30s", "idle_in_transaction_session_timeout": "60s"}}
_OWN = """\
-- Who migrates and keeps the tables owns them; whoever made them before.
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
    IF '{owner}'::regrole <> (
        SELECT n.nspowner FROM pg_namespace AS n WHERE n.nspname = '{schema}'
    ) THEN
        ALTER SCHEMA {schema} OWNER TO {owner};
    END IF;
END
$$;"""

_REVOKE = """\
-- Nothing for anybody but the owner, and then what each needs.
REVOKE ALL ON SCHEMA {schema} FROM PUBLIC, {others};
REVOKE ALL ON ALL TABLES IN SCHEMA {schema} FROM PUBLIC, {others};
REVOKE ALL ON ALL SEQUENCES IN SCHEMA {schema} FROM PUBLIC, {others};
ALTER DEFAULT PRIVILEGES FOR ROLE {owner} REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC;
GRANT USAGE ON SCHEMA {schema} TO {others};"""


def script(schema: str) -> str:
    """The statements that make the roles of a schema, take every right from them and from PUBLIC,
    and grant what each needs: one transaction, the same however often it is run."""
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
            "COMMIT;\n",
        ]
    )


def _create(role: str, name: str) -> str:
    settings = "".join(
        f"\n        ALTER ROLE {name} SET {setting} = '{value}';"
        for setting, value in _SETTINGS.get(role, {}).items()
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
