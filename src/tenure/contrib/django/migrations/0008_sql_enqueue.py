"""Tenure's migration 008."""

from django.db import migrations

from tenure.contrib.django.migration_operations import Step


class Migration(migrations.Migration):
    """Add the function that enqueues a job from SQL."""

    dependencies = (("tenure", "0007_reserved"),)
    operations = (Step(8),)
