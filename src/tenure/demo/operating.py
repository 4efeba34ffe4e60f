"""What people do in the shop: two of them, who pause, limit, cancel, hold, retry, and say why."""

from datetime import UTC, datetime, timedelta

from tenure.admin import By, Filter, Scope, State
from tenure.demo.producing import orders
from tenure.demo.shop import app, catalogue, charge, stock, tax


def ana(reason: str) -> By:
    """Ana, who looks after the shop."""
    return By("ana", reason=reason)


def ben(reason: str) -> By:
    """Ben, who looks after the money."""
    return By("ben", reason=reason)


def token() -> str:
    """The secret of an access token for everything, which lasts a day."""
    by = By("tenure demo", reason="to sign in with")
    return app.admin.tokens.create("demo", by, scopes=list(Scope), expires_in=86_400).secret


def open_shop() -> None:
    """What is there before anybody works: limits, a pause, schedules, the first jobs."""
    admin = app.admin
    admin.limit_queue("payments", 2, ben("the bank takes two at once"))
    noon = datetime.now(UTC) + timedelta(hours=1)
    admin.pause_queue("exports", ana("the warehouse moves"), until=noon)
    counting, archiving = ana("the shelves are counted"), ben("the archive is full")
    admin.schedules.create("imports.stock", stock, counting, every=5, missed="skip")
    admin.schedules.create("imports.archive", stock, archiving, cron="30 2 * * *", missed="all")
    admin.schedules.pause("imports.archive", archiving)
    for supplier in ("nordwind", "kontor"):
        catalogue.using(key=supplier, tags=["first"]).enqueue(supplier, products=900)
    for country in ("PT", "GR", "ES", "PT", "PT"):
        tax.enqueue(country, 2025)
    order = next(orders())
    held = charge.using(tags=["dispute"]).enqueue(order, card_token="tok_0002")  # noqa: S106 - it opens nothing
    admin.hold([held.id], ben("the customer disputes it"))
    late = charge.using(delay=3600).enqueue(order, card_token="tok_0003")  # noqa: S106
    admin.cancel([late.id], ben("was ordered twice"))


def retry_taxes() -> bool:
    """Start an operation that takes its time, unless the last one still does."""
    operations = app.admin.operations
    if not all(one.state.is_ended for one in operations.list(count=2)):
        return False
    of = Filter(state=State.FAILED, task=tax.name)
    operations.start("retry", of, ana("the rates are entered"), rate=1)
    return True


def discard_declined() -> None:
    """An operation that is done at once."""
    of = Filter(state=State.FAILED, task=charge.name)
    app.admin.operations.start("discard", of, ben("the customers know"))


def cancel_import() -> None:
    """Ask the holder of the youngest import to end it."""
    found = app.admin.jobs(State.RUNNING, task=catalogue.name, count=1).jobs
    app.admin.cancel([job.id for job in found], ana("the supplier sends a new list"))


def importer() -> str | None:
    """The name of a worker that runs an import just now."""
    running = app.admin.jobs(State.RUNNING, task=catalogue.name).jobs
    names = {row.id: row.name for row in app.admin.workers()}
    # A worker's processes are named by it and a number.
    found = (names[job.claimed_by] for job in running if job.claimed_by in names)
    return next((name.partition("/")[0] for name in found), None)
