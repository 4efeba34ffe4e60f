"""Tenure's migration 004."""

from django.db import migrations

from tenure.contrib.django.migration_operations import Step


class Migration(migrations.Migration):
    """Access tokens, and answers to requests with an idempotency key."""

    dependencies = (("tenure", "0003_operations"),)
    operations = (Step(4),)
