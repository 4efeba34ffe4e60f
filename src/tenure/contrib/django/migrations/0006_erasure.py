"""Tenure's migration 006."""

from django.db import migrations

from tenure.contrib.django.migration_operations import Step


class Migration(migrations.Migration):
    """Add erasure as a kind of operation."""

    dependencies = (("tenure", "0005_sessions"),)
    operations = (Step(6),)
