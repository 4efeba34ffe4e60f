"""The example shop, from an empty database to orders that are paid once, by its own commands."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
from typing import TYPE_CHECKING, Any
from urllib.request import urlopen

import psycopg
import pytest
from django.test import Client

from support.django_project import SHOP, Shop
from support.workers import Bed, soon

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def bed(url: str, tmp_path: Path) -> Iterator[Bed]:
    bed = Bed(url, tmp_path)
    yield bed
    bed.close()


def place(total: str = "19.90") -> Any:
    """Place an order as a browser would."""
    return Client().post("/orders/", {"email": "ada@example.org", "total": total})


def payments(url: str) -> list[tuple[Any, ...]]:
    """Which payments were taken."""
    with psycopg.connect(url) as connection:
        return connection.execute("SELECT order_id, amount, reference FROM shop_payment").fetchall()


def test_a_fresh_database_is_made_ready_by_migrate_alone(
    empty_database: str, tmp_path: Path
) -> None:
    shop = Shop(empty_database, tmp_path)
    migrated = shop.manage("migrate")
    assert migrated.returncode == 0, migrated.stderr
    assert "Applying tenure.0001_initial... OK" in migrated.stdout
    worked = shop.manage("tenure_worker", "--drain")
    assert worked.returncode == 0, worked.stderr


@pytest.mark.timeout(300)
def test_an_order_is_paid_and_its_receipt_sent(shop: Shop, project: Any, bed: Bed) -> None:
    """Shows R17, R20."""
    answer = place()
    assert answer.status_code == 201
    order, job = answer.json()["order"], answer.json()["job"]
    with shop.worker() as worker:
        soon(lambda: bed.job(job).state == "completed", 60, worker.log())
        soon(lambda: bed.ended() == 2, 60, worker.log())
        assert worker.stop() == 0
    assert Client().get(f"/orders/{order}/").json() == {"order": order, "paid": True}
    assert [row[0] for row in payments(bed.url)] == [order]
    [mail] = shop.mail.iterdir()
    assert "19.90 paid" in mail.read_text()


def test_an_order_that_is_refused_leaves_no_job(project: Any, bed: Bed) -> None:
    assert place(total="0").status_code == 400
    assert bed.count("SELECT count(*) FROM shop_order") == 0
    assert bed.count("SELECT count(*) FROM tenure.job") == 0


@pytest.mark.timeout(300)
def test_an_order_is_paid_once_although_the_workers_child_was_killed_at_it(
    shop: Shop, project: Any, bed: Bed
) -> None:
    """Shows R20."""
    job = place().json()["job"]
    with shop.worker(BANK_SECONDS="3") as worker:
        soon(lambda: in_transaction(bed), 60, worker.log())
        [child] = worker.children
        os.kill(child, signal.SIGKILL)
        soon(lambda: bed.job(job).state == "completed", 90, worker.log())
        soon(lambda: bed.ended() == 2, 60, worker.log())
    assert [attempt.outcome for attempt in bed.attempts(job)] == ["lost", "completed"]
    assert len(payments(bed.url)) == 1
    assert len(list(shop.mail.iterdir())) == 1


@pytest.mark.timeout(300)
def test_what_the_readme_says_works(shop: Shop, bed: Bed) -> None:
    """With a server of its own, on a port that is free."""
    text = (SHOP / "README.md").read_text()
    lines = re.findall(r"^```sh\n(.*?)^```", text, re.DOTALL | re.MULTILINE)[0].splitlines()
    assert [line.split()[0] for line in lines] == ["pip", "export", *["python"] * 3, "curl"]
    assert [line.split()[2] for line in lines[2:5]] == ["migrate", "tenure_worker", "runserver"]
    found = re.fullmatch(r'curl --data "(.*)" http://localhost:8000(/.*)', lines[5])
    assert found is not None
    data, path = found.groups()
    with shop.worker() as worker, shop.server() as address:
        answer: dict[str, Any] = {}

        def answered() -> bool:
            with contextlib.suppress(OSError), urlopen(f"{address}{path}", data.encode()) as result:  # noqa: S310 - its own server
                answer.update(json.load(result))
            return bool(answer)

        soon(answered, 60, "the server did not answer")
        soon(lambda: bed.job(answer["job"]).state == "completed", 60, "the order was not charged")
        assert worker.stop() == 0
    assert [row[0] for row in payments(bed.url)] == [answer["order"]]


def in_transaction(bed: Bed) -> bool:
    """Whether a handler is at the bank: its transaction is open and waits. A claim's is short."""
    return bool(
        bed.count(
            "SELECT count(*) FROM pg_stat_activity "
            "WHERE datname = current_database() AND state = 'idle in transaction' "
            "AND state_change < clock_timestamp() - interval '0.5 s'"
        )
    )
