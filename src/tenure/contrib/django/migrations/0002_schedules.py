"""Tenure's migration 002."""

from django.db import migrations

from tenure.contrib.django.migration_operations import Step


class Migration(migrations.Migration):
    """Schedules."""

    dependencies = (("tenure", "0001_lease_store"),)
    operations = (Step(2),)
