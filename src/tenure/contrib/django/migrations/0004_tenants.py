"""Tenure's migration 004."""

from django.db import migrations

from tenure.contrib.django.migration_operations import Step


class Migration(migrations.Migration):
    """Limit access tokens by task, and give tokens and queues quotas."""

    dependencies = (("tenure", "0003_validate_checks"),)
    operations = (Step(4),)
