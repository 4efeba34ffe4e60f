"""Tenure's migration 005."""

from django.db import migrations

from tenure.contrib.django.migration_operations import Step


class Migration(migrations.Migration):
    """Add dashboard sessions, sign-in codes and addresses."""

    dependencies = (("tenure", "0004_tenants"),)
    operations = (Step(5),)
