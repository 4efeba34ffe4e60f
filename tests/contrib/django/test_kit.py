"""The testing kit in a Django project: everything over the connection of the test's transaction."""

from __future__ import annotations

import pytest
from django.db import connection, transaction
from django_tasks import TaskResultStatus
from shop.models import Order, Payment
from shop.tasks import charge, send_receipt

from tenure.contrib.django import app
from tenure.testing import drain, inline, use_connection
from tests.contrib.django.acts import seen

pytestmark = pytest.mark.usefixtures("project")


def test_jobs_of_a_rolled_back_test_are_drained_inside_it(url: str) -> None:
    with transaction.atomic():
        order = Order.objects.create(email="ada@example.org", total="5.00")
        with use_connection(app, connection.connection):
            charge.enqueue(order.pk)
            drained = drain(app)
            assert drained.completed == 2, "the charge, and the receipt that it enqueued"
        assert Payment.objects.count() == 1
        transaction.set_rollback(True)
    assert seen(url, "SELECT id FROM tenure.job_archive") == []
    assert Payment.objects.count() == 0


def test_a_task_of_the_framework_runs_inline() -> None:
    with transaction.atomic():
        order = Order.objects.create(email="ada@example.org", total="5.00")
        with use_connection(app, connection.connection), inline(app):
            result = send_receipt.enqueue(order.pk)
        result.refresh()
        assert result.status == TaskResultStatus.SUCCESSFUL
        assert result.return_value == "ada@example.org"
        transaction.set_rollback(True)
