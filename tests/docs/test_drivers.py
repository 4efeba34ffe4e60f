"""The drivers' table: every driver, every column, no empty cell."""

from __future__ import annotations

from support.drivers import DRIVERS
from tests.drivers import matrix


def test_the_table_has_every_driver_and_no_empty_cell() -> None:
    """`just docs-drivers` writes it from what the tests of each cell showed."""
    table = matrix.PAGE.read_text().split(matrix.BEGIN)[1].split(matrix.END)[0].split("\n")
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table if line]
    names = [driver.name for driver in DRIVERS] + list(matrix.OTHERS)

    assert rows[0] == ["driver", *matrix.COLUMNS]
    assert [row[0] for row in rows[2:]] == names
    assert all(all(row) and len(row) == len(rows[0]) for row in rows[2:])
