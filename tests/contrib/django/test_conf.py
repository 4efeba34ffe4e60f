"""Settings: what they say of the database, and what checks say of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.db import connections
from django.test import override_settings
from psycopg import IsolationLevel, conninfo

from tenure.contrib.django import conf
from tenure.contrib.django.checks import check as checked

if TYPE_CHECKING:
    from collections.abc import Iterator

CODEC = object()
POSTGRES = "django.db.backends.postgresql"


@pytest.fixture
def other() -> Iterator[Any]:
    """A way to have a database `other` in the settings."""

    def have(**given: Any) -> Any:
        given.setdefault("ENGINE", POSTGRES)
        whole = connections.configure_settings({"default": {}, "other": given})
        connections.settings["other"] = whole["other"]
        return connections["other"]

    yield have
    if "other" in connections.settings:
        del connections["other"]
        del connections.settings["other"]


def check(**tenure: Any) -> list[tuple[str, str]]:
    with override_settings(TENURE=tenure):
        return [(str(message.id), f"{message.msg}; {message.hint}") for message in checked()]


@pytest.mark.parametrize(
    "password", ["plain", "p@ss:w/rd?&#%", "it's \\ odd", " spaces ", "ünïcode=5"]
)
def test_a_password_arrives_as_it_is(other: Any, password: str) -> None:
    answer = other(NAME="shop", USER="ada", PASSWORD=password, HOST="db.example.org", PORT="6543")
    found = conninfo.conninfo_to_dict(conf.address(answer))
    assert found["password"] == password
    assert (found["host"], found["port"], found["user"]) == ("db.example.org", "6543", "ada")


def test_a_socket_and_libpqs_own_options_are_passed_on(other: Any) -> None:
    options = {
        "sslmode": "verify-full",
        "options": "-c search_path=shop",
        "keepalives_idle": 7,
        "isolation_level": IsolationLevel.SERIALIZABLE,
        "pool": {"min_size": 1},
        "prepare_threshold": 5,
        "server_side_binding": True,
        "assume_role": "shop",
    }
    found = conninfo.conninfo_to_dict(
        conf.address(other(NAME="shop", HOST="/run/postgresql", OPTIONS=options))
    )
    assert found == {
        "dbname": "shop",
        "host": "/run/postgresql",
        "sslmode": "verify-full",
        "options": "-c search_path=shop -c role=shop",
        "keepalives_idle": "7",
        "client_encoding": "UTF8",
    }


def test_a_service_needs_no_name(other: Any) -> None:
    found = conninfo.conninfo_to_dict(conf.address(other(NAME="", OPTIONS={"service": "shop"})))
    assert found["service"] == "shop"
    assert "dbname" not in found


def test_settings_that_are_in_order_are_not_spoken_of() -> None:
    assert check() == []
    assert check(DATABASE="default", SCHEMA="tenure", POOL_SIZE=3) == []


@pytest.mark.parametrize(
    ("given", "remedy"),
    [
        ({"SCHMEA": "x"}, "write 'SCHEMA'"),
        ({"database": "x"}, "write 'DATABASE'"),
        (
            {"COLOUR": "x"},
            "use CODEC, DATABASE, IMPORTS, LISTEN, POOL_SIZE, PROGRAM, SCHEMA, VERSION",
        ),
    ],
)
def test_unknown_key_is_refused_with_a_suggestion(given: dict[str, str], remedy: str) -> None:
    [(code, text)] = check(**given)
    assert code == "tenure.E001"
    assert remedy in text


def test_a_schema_that_would_need_quoting_is_refused() -> None:
    [(code, text)] = check(SCHEMA="My Jobs")
    assert code == "tenure.E005"
    assert "lower-case letters" in text


def test_a_database_that_is_not_there_is_refused() -> None:
    [(code, text)] = check(DATABASE="nowhere")
    assert (code, "'nowhere'" in text, "default" in text) == ("tenure.E002", True, True)


def test_a_database_that_is_not_postgresql_is_refused(other: Any) -> None:
    other(ENGINE="django.db.backends.sqlite3", NAME=":memory:")
    [(code, text)] = check(DATABASE="other")
    assert code == "tenure.E003"
    assert "SQLite" in text


def test_psycopg2_is_refused_with_what_to_install(
    other: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    import psycopg2  # noqa: PLC0415 - only here, to be refused

    monkeypatch.setattr(other(NAME="shop"), "Database", psycopg2, raising=False)
    [(code, text)] = check(DATABASE="other")
    assert code == "tenure.E004"
    assert "psycopg[binary]" in text


def test_an_isolation_in_which_jobs_cannot_be_completed_is_warned_of(other: Any) -> None:
    other(NAME="shop", OPTIONS={"isolation_level": IsolationLevel.SERIALIZABLE})
    [(code, text)] = check(DATABASE="other")
    assert code == "tenure.W001"
    assert "SERIALIZABLE" in text
    other(NAME="shop", OPTIONS={"isolation_level": IsolationLevel.READ_COMMITTED})
    del connections["other"]
    assert check(DATABASE="other") == []


def test_a_database_without_autocommit_is_warned_of(other: Any) -> None:
    other(NAME="shop", AUTOCOMMIT=False)
    [(code, _)] = check(DATABASE="other")
    assert code == "tenure.W002"


@pytest.mark.parametrize("codec", [f"{__name__}.CODEC", CODEC])
def test_a_codec_is_given_as_it_is_or_by_its_path(codec: object) -> None:
    with override_settings(TENURE={"CODEC": codec}):
        assert conf.read().codec is CODEC
        assert checked() == []
