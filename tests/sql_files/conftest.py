"""One connection to the private server, for literals that it reads back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import psycopg
import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from psycopg.rows import TupleRow

    from support.cluster import Cluster


@pytest.fixture(scope="module")
def cluster_connection(cluster: Cluster) -> Iterator[psycopg.Connection[TupleRow]]:
    with psycopg.connect(cluster.url(), autocommit=True) as connection:
        yield connection
