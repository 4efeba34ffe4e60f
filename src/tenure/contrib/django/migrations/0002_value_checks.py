"""Tenure's migration 002."""

from django.db import migrations

from tenure.contrib.django.migration_operations import Step


class Migration(migrations.Migration):
    """Check the values of columns for new rows."""

    dependencies = (("tenure", "0001_initial"),)
    operations = (Step(2),)
