"""Databases beside another, and the emptying between tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import psycopg
import pytest

from tenure import _wiring
from tenure.admin import By
from tenure.testing import drain
from tenure.testing.databases import clear
from tests.testing import shop

if TYPE_CHECKING:
    from tenure import Tenure


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("postgresql://u:p%40@h:1/a", "postgresql://u:p%40@h:1/b"),
        ("postgresql://u@/a?host=%2Ftmp%2Fx", "postgresql://u@/b?host=%2Ftmp%2Fx"),
        ("postgresql://u@h?dbname=a&sslmode=require", "postgresql://u@h/b?sslmode=require"),
        ("host=h user=u dbname=a", "user=u dbname=b host=h"),
    ],
)
def test_another_database_on_the_same_server_differs_in_its_name_only(
    url: str, expected: str
) -> None:
    assert _wiring.database_name(url) == "a"
    assert _wiring.beside(url, "b") == expected
    assert _wiring.database_name(expected) == "b"


def test_emptying_leaves_the_schema_and_nothing_else(app: Tenure, tenure_database: str) -> None:
    shop.crawl.using(key="k", key_for=60).enqueue(2)
    shop.charge.enqueue(1)
    shop.chain.using(delay=60).enqueue(1)
    drain(app, fast_forward=60, raise_errors=False)
    app.admin.queues.pause("mail", by=By("test"))

    clear(tenure_database)

    with psycopg.connect(tenure_database) as connection:
        tables = connection.execute(
            "SELECT tablename FROM pg_tables WHERE schemaname = 'tenure' ORDER BY 1"
        ).fetchall()
        full = [
            table
            for (table,) in tables
            if connection.execute(f'SELECT 1 FROM tenure."{table}" LIMIT 1'.encode()).fetchone()
        ]
    assert full == ["schema_version"]
    shop.chain.using(key="k").enqueue(0)
    assert drain(app).completed == 1
