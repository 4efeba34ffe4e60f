"""Every route × role × things of another tenant: a sample of `just rights`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from support import rights

if TYPE_CHECKING:
    from tests.server.conftest import Service


def test_no_role_reaches_another_tenants_things(service: Service) -> None:
    result = rights.run(service, count=900)

    assert result.findings == []
    assert result.cases == 900
    assert result.routes > 60
