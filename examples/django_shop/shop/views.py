"""What the shop answers."""

from decimal import Decimal

from django.db import transaction
from django.http import HttpRequest, HttpResponseBadRequest, JsonResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404
from django.views.decorators.http import require_GET, require_POST

from shop.models import Order
from shop.tasks import charge


@require_POST
def place_order(request: HttpRequest) -> HttpResponseBase:
    """Place an order and have it charged: both, or neither."""
    with transaction.atomic():
        order = Order.objects.create(
            email=request.POST["email"], total=Decimal(request.POST["total"])
        )
        job = charge.using(key=f"order-{order.pk}").enqueue(order.pk)
        if order.total <= 0:
            # The order goes, and its job with it.
            transaction.set_rollback(True)
            return HttpResponseBadRequest("nothing to pay")
    return JsonResponse({"order": order.pk, "job": job.id}, status=201)


@require_GET
def show_order(request: HttpRequest, order_id: int) -> HttpResponseBase:
    """How far an order has come."""
    order = get_object_or_404(Order, pk=order_id)
    return JsonResponse({"order": order.pk, "paid": order.paid_at is not None})
