"""The producer: a process that places a few orders per second until it is stopped."""

import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import count, cycle

from tenure.demo.shop import Order, catalogue, charge, drawing, sales, tax, warehouse

PAUSE = 0.4
# Orders that came in overnight.
AT_ONCE = 30
CUSTOMERS = ("ada", "grace", "edsger", "barbara", "donald", "frances")
SUPPLIERS = ("nordwind", "kontor", "brightside")
REGIONS = ("north", "south")
TAXED = ("PT", "GR", "PT", "ES")


def main() -> None:
    """Place orders."""
    for order in orders():
        place(order)
        time.sleep(PAUSE if order.number > AT_ONCE else 0)


def orders() -> Iterator[Order]:
    """Yield orders endlessly."""
    for number, customer in zip(count(1), cycle(CUSTOMERS), strict=False):
        total = Decimal(number * 37 % 400) + Decimal("4.95")
        yield Order(number, customer, total, gift=number % 4 == 0)


def place(order: Order) -> None:
    """Enqueue an order's jobs."""
    number = order.number
    tags = ["gift"] if order.gift else []
    paying = charge.using(key=f"order-{number}", key_for=60, tags=[order.customer, *tags])
    paying.enqueue(order, card_token=f"tok_{number * 7919 % 10_000:04}")
    if number % 10 == 0:
        # A customer clicked twice: the key ensures there's only one job.
        paying.enqueue(order, card_token=f"tok_{number * 7919 % 10_000:04}")
    for each, enqueue in _EXTRAS.items():
        if number % each == 0:
            enqueue(order, number // each)


def _report(_order: Order, nth: int) -> None:
    yesterday = datetime.now(UTC).date() - timedelta(days=1 + nth % 5)
    sales.using(priority=3).enqueue(yesterday, REGIONS[nth % 2])


def _tax(_order: Order, nth: int) -> None:
    tax.using(tags=["yearly"]).enqueue(TAXED[nth % len(TAXED)], 2026)


def _import(_order: Order, nth: int) -> None:
    supplier = SUPPLIERS[nth % len(SUPPLIERS)]
    catalogue.using(key=supplier).enqueue(supplier, products=90 + nth % 3 * 30)


def _reminder(order: Order, _nth: int) -> None:
    charge.using(delay=900, tags=["later"]).enqueue(order, card_token="tok_0001")  # noqa: S106 - it opens nothing


def _packing(order: Order, _nth: int) -> None:
    warehouse.enqueue(order)


def _picture(_order: Order, _nth: int) -> None:
    drawing.enqueue(pages=3)


# Extra jobs, each after every nth order.
_EXTRAS: dict[int, Callable[[Order, int], None]] = {
    5: _report,
    12: _import,
    17: _packing,
    18: _tax,
    19: _reminder,
    45: _picture,
}
