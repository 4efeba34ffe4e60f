"""Tenure's migration 006."""

from django.db import migrations

from tenure.contrib.django.migration_operations import Step


class Migration(migrations.Migration):
    """Backfills as operations."""

    dependencies = (("tenure", "0005_rollups"),)
    operations = (Step(6),)
