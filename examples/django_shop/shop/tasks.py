"""What the shop does after its answer. A worker finds this file by its name."""

import time

from django.conf import settings
from django.core.mail import send_mail
from django.db import connection, transaction
from django.utils import timezone
from django_tasks import task

from shop.models import Order, Payment
from tenure import Job
from tenure.contrib.django import app


@app.task(max_attempts=5)
def charge(job: Job, order_id: int) -> None:
    """Take the money, exactly once: payment, receipt and the job's end are one commit."""
    with transaction.atomic():
        order = Order.objects.select_for_update().get(pk=order_id)
        _ask_the_bank(job.idempotency_key)
        Payment.objects.create(order=order, amount=order.total, reference=job.idempotency_key)
        order.paid_at = timezone.now()
        order.save()
        send_receipt.enqueue(order.pk)
        job.complete(connection=connection)


@task(queue_name="mail")
def send_receipt(order_id: int) -> str:
    """Tell the customer. A task of Django's own framework, run by the same worker."""
    order = Order.objects.get(pk=order_id)
    send_mail("Your receipt", f"{order.total} paid, thank you.", None, [order.email])
    return str(order.email)


def _ask_the_bank(reference: str) -> None:
    """A pretended bank; a real one is given the reference, and so takes the money once."""
    time.sleep(settings.BANK_SECONDS)
