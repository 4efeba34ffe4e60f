"""What Django needs to know a page and its permissions by. Jobs are asked for by `app.admin`."""

from django.db import models

from tenure.contrib.django import conf


def table(name: str) -> str:
    """A table of Tenure's schema, in the form that Django's quoting makes whole."""
    return f'{conf.read().schema}"."{name}'


class _Nothing(models.Manager["Job"]):
    """No rows: what dumps a project's models must not take live jobs along."""

    def get_queryset(self) -> "models.QuerySet[Job]":
        """None of them."""
        return super().get_queryset().none()


class Job(models.Model):
    """A job, for the menu and the permissions. Django neither makes the table nor reads it."""

    id: "models.BigIntegerField[int, int]" = models.BigIntegerField(primary_key=True)
    objects = _Nothing()

    class Meta:
        """Not Django's, and to be looked at only."""

        managed = False
        db_table = table("job")
        default_permissions = ("view",)
        permissions = (("view_payload", "Can view the arguments and results of jobs"),)
