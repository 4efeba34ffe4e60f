"""Tenure's migration 003."""

from django.db import migrations

from tenure.contrib.django.migration_operations import Step


class Migration(migrations.Migration):
    """Operations."""

    dependencies = (("tenure", "0002_schedules"),)
    operations = (Step(3),)
