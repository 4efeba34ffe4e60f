"""Tenure's migration 005."""

from django.db import migrations

from tenure.contrib.django.migration_operations import Step


class Migration(migrations.Migration):
    """Rollups."""

    dependencies = (("tenure", "0004_access"),)
    operations = (Step(5),)
