"""Tenure's migration 001, and the model for the admin's page."""

from django.db import migrations, models

from tenure.contrib.django.migration_operations import Step
from tenure.contrib.django.models import table


class Migration(migrations.Migration):
    """Create Tenure's tables."""

    initial = True
    dependencies = ()
    operations = (
        Step(1),
        migrations.CreateModel(
            name="Job",
            fields=[("id", models.BigIntegerField(primary_key=True, serialize=False))],
            options={
                "db_table": table("job"),
                "managed": False,
                "default_permissions": ("view",),
                "permissions": (("view_payload", "Can view the arguments and results of jobs"),),
            },
        ),
    )
