"""Tenure's migration 008."""

from django.db import migrations

from tenure.contrib.django.migration_operations import Step


class Migration(migrations.Migration):
    """Add notices: their rules, their groups, and the triggers that enqueue them."""

    dependencies = (("tenure", "0007_sql_enqueue"),)
    operations = (Step(8),)
