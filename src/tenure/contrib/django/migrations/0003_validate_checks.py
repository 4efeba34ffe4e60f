"""Tenure's migration 003."""

from django.db import migrations

from tenure.contrib.django.migration_operations import Step


class Migration(migrations.Migration):
    """Check the values of columns in all rows."""

    dependencies = (("tenure", "0002_value_checks"),)
    operations = (Step(3),)
