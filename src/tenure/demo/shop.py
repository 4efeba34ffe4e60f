"""The shop: its tasks and schedules. An order's number determines what fails."""

import asyncio
import logging
import time
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

from tenure import AsyncJob, Backoff, Cancel, Job, Tenure

app: Tenure = Tenure(program="shop", version=1)
log: logging.Logger = logging.getLogger("shop")

SOON = Backoff(base=2, cap=20)
PAGE = 3
ENTERED_AFTER = timedelta(seconds=20)


class CardDeclined(Exception):
    """The bank declined the card, and would decline it again."""


class UnknownTaxRate(LookupError):
    """The rate hasn't been entered yet."""


@dataclass(frozen=True)
class Order:
    """A customer's order."""

    number: int
    customer: str
    total: Decimal
    gift: bool = False


@app.task(name="mail.receipt", queue="mail", max_attempts=5, backoff=SOON)
def receipt(job: Job, order: Order) -> str:
    """Send a receipt. The mail server is sometimes busy until the third attempt."""
    log.info("receipt of order %d to %s", order.number, order.customer)
    time.sleep(0.05)
    if order.number % 17 == 0 and job.attempt < 2 + order.number % 2:
        raise ConnectionError("451 4.7.1 mail.shop.example is busy, try again")
    return f"250 queued as R{order.number}"


@app.task(
    name="payments.charge", queue="payments", priority=7, backoff=SOON, give_up_on=(CardDeclined,)
)
def charge(job: Job, order: Order, card_token: str) -> dict[str, str]:
    """Charge the card, and enqueue the receipt if that succeeds."""
    time.sleep(0.3)
    if order.number % 23 == 0:
        raise CardDeclined(f"the card that ends in {card_token[-4:]} has expired")
    job.enqueue(receipt.using(tags=[order.customer]).bind(order))
    return {"charged": str(order.total), "currency": "EUR"}


@app.task(name="imports.catalogue", queue="imports", lease=7, stop_within=1, timeout=600)
def catalogue(job: Job, supplier: str, products: int) -> object:
    """Import products page by page. After a crash, the next attempt resumes from the cursor."""
    for first in range(job.cursor or 0, products, PAGE):
        if job.cancel_requested:
            raise Cancel("requested")
        time.sleep(1)
        page = range(first, min(first + PAGE, products))
        job.progress(
            cursor=page.stop,
            items={f"{supplier}-{n}": {"price": f"{n * 7 % 90 + 9}.90"} for n in page},
            done=page.stop,
            total=products,
            message=f"{supplier}: product {page.stop} of {products}",
        )
    return job.finished("no_more_products", {"products": products})


@app.task(name="reports.sales", queue="reports")
async def sales(day: date, region: str) -> str:
    """Wait for a report from another service."""
    await asyncio.sleep(1 + day.day % 3)
    return f"https://reports.shop.example/{region}/{day}"


@app.task(name="reports.tax", queue="reports", max_attempts=2, backoff=Backoff(base=1, cap=1))
def tax(job: Job, country: str, year: int) -> None:
    """Fail in one of three ways. One of the causes gets fixed later, so a retry then succeeds."""
    if country == "PT" and datetime.now(UTC) - job.created_at < ENTERED_AFTER:
        raise UnknownTaxRate(f"there is no rate for {country} in {year}")
    if country == "GR":
        raise TimeoutError("tax.shop.example did not answer within 5 s")
    rates = {"DE": 19, "FR": 20, "PT": 23}
    log.info("the rate is %d %%", rates[country])


@app.task(name="reports.drawing", queue="reports")
async def drawing(job: AsyncJob, pages: int) -> int:
    """Block the event loop, which a handler should not do. The worker reports where."""
    await job.progress(message="drawing")
    time.sleep(pages)  # noqa: ASYNC251 - that is what it shows
    return pages


@app.task(name="exports.warehouse", queue="exports")
def warehouse(order: Order) -> None:
    """Notify the warehouse."""


@app.schedule(every=10, name="mail.digest", overlap="skip")
@app.task(name="mail.digest", queue="mail")
def digest() -> None:
    """Send a digest."""
    time.sleep(0.2)


@app.schedule("* * * * *", timezone="America/New_York", name="payments.settle", jitter=5)
@app.schedule("0 9 * * 1-5", timezone="Europe/Berlin", name="payments.settle-weekdays")
@app.task(name="payments.settle", queue="payments")
def settle() -> None:
    """Settle the payments with the bank."""
    time.sleep(0.5)


@app.task(name="imports.stock", queue="imports")
def stock() -> int:
    """Count the stock."""
    return 4711
