"""Check the database connection, what the server logs, and who can read the password."""

from contextlib import suppress

from tenure import _settings
from tenure._model.diagnostics import FindingCode, ServerInfo
from tenure.admin.doctor.findings import Findings, fine, in_sql, run, warning
from tenure.errors import ConfigError

_SUBJECT = "security"


def security(server: ServerInfo) -> Findings:
    """Run these checks. Findings are only warnings, because a private network may mitigate them."""
    findings = [*connection(server), *server_log(server), *settings_file()]
    yield from findings or [fine(_SUBJECT, "the connection, the log and tenure.toml keep secrets")]


def connection(server: ServerInfo) -> Findings:
    """Check encryption and the role of a connection to another machine."""
    if server.is_local:
        return
    if not server.is_encrypted:
        yield warning(
            _SUBJECT,
            FindingCode.NOT_ENCRYPTED,
            "the connection to the database on another machine is not encrypted",
            "the network between them can read and change jobs, and see the password's exchange",
            "add sslmode=verify-full to the database URL, with sslrootcert",
        )
    if server.is_superuser:
        yield warning(
            _SUBJECT,
            FindingCode.SUPERUSER,
            f"the role {server.role} is a superuser",
            "a program that is taken over can read every database and run programs on the server",
            "connect as a role that tenure db roles creates",
        )


def server_log(server: ServerInfo) -> Findings:
    """Check that PostgreSQL does not write jobs' arguments to its log."""
    values = {name: row.value for name, row in server.settings.items()}
    statements = values.get("log_statement") in {"mod", "all"}
    slow = any(
        int(values.get(name, -1)) >= 0
        for name in ("log_min_duration_statement", "log_min_duration_sample")
    )
    written = {
        "log_parameter_max_length": statements or slow,
        "log_parameter_max_length_on_error": True,
    }
    for name, applies in written.items():
        if applies and values.get(name, "0") != "0":
            yield warning(
                _SUBJECT,
                FindingCode.PAYLOADS_LOGGED,
                f"PostgreSQL writes arguments of jobs to its log: {name} is {values[name]}",
                "redaction ends at the database, so the log has payloads and secrets in clear",
                in_sql(f"ALTER SYSTEM SET {name} = 0", "SELECT pg_reload_conf()"),
            )


def settings_file() -> Findings:
    """Check that other users cannot read a password in tenure.toml."""
    with suppress(ConfigError, OSError):
        file = _settings.exposed_file()
        if file is not None:
            yield warning(
                _SUBJECT,
                FindingCode.PASSWORD_EXPOSED,
                f"{file} has a password, and every user of this machine can read it",
                "they can connect to the database with it",
                run(f"chmod o-r {file}"),
            )
