"""Django's app configuration: label, system checks, and the step after migrations."""

from django.apps import AppConfig
from django.core import checks
from django.db.models.signals import post_migrate

from tenure.contrib.django.checks import check
from tenure.contrib.django.migration_operations import make_partitions


class TenureConfig(AppConfig):
    """`tenure.contrib.django` in INSTALLED_APPS."""

    name = "tenure.contrib.django"
    label = "tenure"
    verbose_name = "Tenure"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Register the system checks and the step after migrations."""
        checks.register(check)
        post_migrate.connect(make_partitions, sender=self)
