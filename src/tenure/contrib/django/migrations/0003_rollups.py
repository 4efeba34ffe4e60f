"""Tenure's migration 003."""

from django.db import migrations

from tenure.contrib.django.steps import Step


class Migration(migrations.Migration):
    """Rollups."""

    dependencies = (("tenure", "0002_schedules"),)
    operations = (Step(3),)
