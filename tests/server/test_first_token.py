"""The first access token: only for a person at a terminal, and only once per installation."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import pytest

from support.serving import OPS
from tenure import Tenure
from tenure.errors import ConfigError
from tenure.server.serve import first_token
from tenure.types import Scope
from tests.cli.conftest import Command

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.store import Database

LOOPBACK, PUBLIC = "127.0.0.1", "192.0.2.1"


@pytest.fixture
def app(db: Database) -> Iterator[Tenure]:
    app = Tenure(db.url, redis="")
    yield app
    app.close()


def test_start_up_error_names_a_command_that_works(
    app: Tenure, db: Database, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError) as refused:
        first_token(app, PUBLIC, is_terminal=True)
    name, *words = shlex.split(str(refused.value).rpartition(": ")[2])
    assert name == "tenure"
    assert Command(tmp_path, url=db.url)(*words).code == 0
    assert first_token(app, PUBLIC, is_terminal=True) is None
    [token] = app.admin.tokens.list()
    assert token.grant.scopes == (Scope.ADMIN,)


def test_a_person_at_a_terminal_gets_a_token_for_a_new_installation(app: Tenure) -> None:
    secret = first_token(app, LOOPBACK, is_terminal=True)
    assert secret is not None
    assert app.admin.tokens.authenticate(secret).name == "first"
    assert first_token(app, LOOPBACK, is_terminal=True) is None


def test_no_token_is_written_into_a_log(app: Tenure) -> None:
    assert first_token(app, LOOPBACK, is_terminal=False) is None
    assert app.admin.tokens.list() == []


def test_no_token_appears_after_all_were_revoked(app: Tenure) -> None:
    made = app.admin.tokens.create("ops", OPS, scopes=["admin"])
    app.admin.tokens.revoke([made.token.id], OPS)
    assert first_token(app, LOOPBACK, is_terminal=True) is None
    with pytest.raises(ConfigError):
        first_token(app, PUBLIC, is_terminal=True)
