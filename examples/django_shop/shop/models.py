"""What the shop keeps."""

from django.db import models


class Order(models.Model):
    """An order of a customer."""

    email = models.EmailField()
    total = models.DecimalField(max_digits=9, decimal_places=2)
    paid_at = models.DateTimeField(null=True)


class Payment(models.Model):
    """Money that was taken. Two of these for one order would be a charge too many."""

    order = models.ForeignKey(Order, on_delete=models.PROTECT)
    amount = models.DecimalField(max_digits=9, decimal_places=2)
    reference = models.CharField(max_length=100)
