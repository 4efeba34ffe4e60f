"""The shop's tests, each rolled back at its end: the testing kit runs jobs over the connection of
the test's own transaction. `python manage.py test` runs them."""

from django.db import connection
from django.test import TestCase

from shop.models import Order, Payment
from shop.tasks import charge
from tenure.contrib.django import app
from tenure.testing import assert_enqueued, drain, use_connection


class OrderTest(TestCase):
    """The life of an order."""

    def test_an_order_is_charged_once(self) -> None:
        """Also if it was placed twice by the same key."""
        self.client.post("/orders/", {"email": "ada@example.org", "total": "19.90"})
        with use_connection(app, connection.connection):
            drained = drain(app)

        self.assertEqual(drained.completed, 2, "the charge, and the receipt that it enqueued")
        self.assertEqual(Payment.objects.count(), 1)
        self.assertIsNotNone(Order.objects.get().paid_at)

    def test_nothing_to_pay_is_nothing_to_do(self) -> None:
        """The order goes, and its job with it."""
        answer = self.client.post("/orders/", {"email": "ada@example.org", "total": "0"})
        self.assertEqual(answer.status_code, 400)
        assert_enqueued(charge, count=0, connection=connection)
