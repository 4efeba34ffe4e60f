"""How the store's own connections are made: deadlines at both ends, plans that do not flip."""

from psycopg import AsyncConnection, Connection, OperationalError, conninfo
from psycopg.rows import TupleRow

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


def own(url: str, *, name: str = "tenure", **settings: str) -> str:
    """The connection string of one of our own connections; `settings` override the server's."""
    given = conninfo.conninfo_to_dict(url)
    options = " ".join(f"-c {key}={value}" for key, value in (_SERVER | settings).items())
    merged: dict[str, str | int | None] = {**_CLIENT, "application_name": name, **given}
    merged["options"] = f"{given.get('options') or ''} {options}".strip()
    return conninfo.make_conninfo("", **merged)


def connect(url: str, *, name: str = "tenure", **settings: str) -> Connection[TupleRow]:
    """A connection of our own, in autocommit."""
    try:
        return Connection.connect(own(url, name=name, **settings), autocommit=True)
    except OperationalError as error:
        raise Unreachable(_unreachable(error)) from error


async def aconnect(url: str, *, name: str = "tenure", **settings: str) -> AsyncConnection[TupleRow]:
    """The same for the async world."""
    try:
        return await AsyncConnection.connect(own(url, name=name, **settings), autocommit=True)
    except OperationalError as error:
        raise Unreachable(_unreachable(error)) from error


def _unreachable(error: Exception) -> str:
    return (
        f"no connection to a writable PostgreSQL: {error}; "
        "check that the server runs, that the address is right and that it is not a standby"
    )
