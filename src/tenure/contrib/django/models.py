"""A model for the admin's menu and permissions. The pages read jobs through `app.admin`."""

from django.db import models

from tenure.contrib.django import conf


def table(name: str) -> str:
    """Return the name of a table in Tenure's schema, written so Django quotes it correctly."""
    return f'{conf.read().schema}"."{name}'


class _Nothing(models.Manager["Job"]):
    """A manager without rows, so `dumpdata` doesn't include live jobs."""

    def get_queryset(self) -> "models.QuerySet[Job]":
        """Return no rows."""
        return super().get_queryset().none()


class Job(models.Model):
    """A job, for the menu and the permissions. Django never creates or reads the table."""

    id: "models.BigIntegerField[int, int]" = models.BigIntegerField(primary_key=True)
    objects = _Nothing()

    class Meta:
        """Unmanaged, with view permissions only."""

        managed = False
        db_table = table("job")
        default_permissions = ("view",)
        permissions = (("view_payload", "Can view the arguments and results of jobs"),)
