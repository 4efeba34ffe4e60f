"""Tenure's migration 003."""

from django.db import migrations

from tenure.contrib.django.steps import Step


class Migration(migrations.Migration):
    """Access tokens, and answers to requests with an idempotency key."""

    dependencies = (("tenure", "0002_schedules"),)
    operations = (Step(3),)
