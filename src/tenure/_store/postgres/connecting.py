"""How the store's own connections are made: deadlines at both ends, plans that do not flip."""

from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from psycopg import OperationalError, conninfo

from tenure._store.postgres.reached import AsyncReached, Reached
from tenure.errors import Unreachable

# Half-open connections end quickly, seen from here and from the server: default libpq
# hung for over 40 s on a dropped peer, with these it is 3.4 s.
_CLIENT: dict[str, str | int] = {
    "connect_timeout": 3,
    "tcp_user_timeout": 3000,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "target_session_attrs": "read-write",
}
# Statistics of a small table make a sequential scan of every one of our statements; a
# disabled scan looks so dear that JIT would compile it, at a thousand times the price.
_SERVER = {
    "enable_seqscan": "off",
    "enable_bitmapscan": "off",
    "plan_cache_mode": "force_generic_plan",
    "jit": "off",
    "default_transaction_isolation": "read\\ committed",
    "statement_timeout": "10s",
    "lock_timeout": "5s",
    "idle_in_transaction_session_timeout": "30s",
    "tcp_user_timeout": "3000",
    "tcp_keepalives_idle": "5",
    "tcp_keepalives_interval": "2",
    "tcp_keepalives_count": "3",
}


# The same where a pooler hands out sessions: with each transaction, and for it alone.
LOCALLY = "; ".join(
    [
        "BEGIN ISOLATION LEVEL READ COMMITTED",
        *(
            f"SET LOCAL {name} = '{value}'"
            for name, value in _SERVER.items()
            if not name.startswith(("tcp_", "default_"))
        ),
    ]
)


def own(url: str, *, name: str = "tenure", **settings: str) -> str:
    """The connection string of one of our own connections; `settings` override the server's."""
    given = conninfo.conninfo_to_dict(url)
    options = " ".join(f"-c {key}={value}" for key, value in (_SERVER | settings).items())
    merged: dict[str, str | int | None] = {**_CLIENT, "application_name": name, **given}
    merged["options"] = f"{given.get('options') or ''} {options}".strip()
    return conninfo.make_conninfo("", **merged)


def callers(url: str, *, name: str) -> str:
    """The connection string of a connection for users' SQL: our deadlines on the link, the
    server's own settings for plans and statements."""
    given = conninfo.conninfo_to_dict(url)
    return conninfo.make_conninfo("", **{**_CLIENT, "application_name": name, **given})


def connect(url: str, *, name: str = "tenure", **settings: str) -> Reached:
    """A connection of our own, in autocommit."""
    with _unreachable():
        return Reached.connect(own(url, name=name, **settings), autocommit=True)


async def aconnect(url: str, *, name: str = "tenure", **settings: str) -> AsyncReached:
    """The same for the async world."""
    with _unreachable():
        return await AsyncReached.connect(own(url, name=name, **settings), autocommit=True)


@contextmanager
def _unreachable() -> Iterator[None]:
    try:
        yield
    except OperationalError as error:
        if "startup parameter" in str(error):
            raise Unreachable(
                f"a pooler refuses what the database's URL asks for: {error}; take it out of the "
                "URL, or let PgBouncer drop it: ignore_startup_parameters = options"
            ) from error
        raise Unreachable(
            f"no connection to a writable PostgreSQL: {error}; "
            "check that the server runs, that the address is right and that it is not a standby"
        ) from error


def database_name(url: str) -> str:
    """The name of the database; empty if the URL leaves it to libpq."""
    return str(conninfo.conninfo_to_dict(url).get("dbname") or "")


def beside(url: str, database: str) -> str:
    """The URL of another database on the same server."""
    if "://" not in url:
        return conninfo.make_conninfo(url, dbname=database)
    parts = urlsplit(url)
    kept = [(name, value) for name, value in parse_qsl(parts.query) if name != "dbname"]
    return parts._replace(path=f"/{quote(database)}", query=urlencode(kept)).geturl()
