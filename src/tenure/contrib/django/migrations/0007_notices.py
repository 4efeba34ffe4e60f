"""Tenure's migration 007."""

from django.db import migrations

from tenure.contrib.django.migration_operations import Step


class Migration(migrations.Migration):
    """Add notices: their rules, their groups, and the triggers that enqueue them."""

    dependencies = (("tenure", "0006_erasure"),)
    operations = (Step(7),)
