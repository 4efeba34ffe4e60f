"""Tenure's migration 007."""

from django.db import migrations

from tenure.contrib.django.migration_operations import Step


class Migration(migrations.Migration):
    """Counters of losses."""

    dependencies = (("tenure", "0006_backfills"),)
    operations = (Step(7),)
