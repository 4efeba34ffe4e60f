"""A connection that others can listen to, and a password that others can read."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tenure.admin import connect, examine
from tenure.admin.doctor.security import connection
from tenure.types import FindingCode

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from tests.doctor.conftest import Bed


def test_connection_to_another_machine_needs_encryption_and_no_superuser(bed: Bed) -> None:
    with connect(bed.url) as admin:
        info = admin._run(admin._store.inspection.server_info())
    assert (info.is_superuser, info.is_local, info.is_encrypted) == (True, True, False)
    assert not list(connection(info))
    # As seen from another machine: the tests have only this one.
    away = replace(info, is_local=False)
    found = [each.fault for each in connection(away)]
    assert found == [FindingCode.NOT_ENCRYPTED, FindingCode.SUPERUSER]
    assert not list(connection(replace(away, is_encrypted=True, is_superuser=False)))


def test_password_that_others_can_read_is_found_until_its_remedy_is_taken(
    bed: Bed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "tenure.toml"
    file.write_text('database_url = "postgresql://ana:secret@host/shop"')
    file.chmod(0o644)
    monkeypatch.chdir(tmp_path)
    [found] = [each for each in examine(bed.url) if each.fault is FindingCode.PASSWORD_EXPOSED]
    assert found.todo == f"run: chmod o-r {file}"
    file.chmod(0o640)
    assert not bed.found(FindingCode.PASSWORD_EXPOSED)
