"""Tenure's migration 007."""

from django.db import migrations

from tenure.contrib.django.migration_operations import Step


class Migration(migrations.Migration):
    """Add the function that enqueues a job from SQL."""

    dependencies = (("tenure", "0006_erasure"),)
    operations = (Step(7),)
