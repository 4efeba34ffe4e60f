"""What the reference says of Django is what the code has."""

from __future__ import annotations

import dataclasses
import re

from support.binaries import ROOT
from tenure.contrib.django.conf import Settings
from tenure.contrib.django.models import Job
from tenure.contrib.django.tasks import priority

REFERENCE = (ROOT / "docs" / "reference" / "django.md").read_text()


def test_every_setting_is_documented() -> None:
    fields = {field.name.upper() for field in dataclasses.fields(Settings)}
    section = REFERENCE.partition("## Settings")[2].partition("## ")[0]
    assert set(re.findall(r"^\| `([A-Z_]+)` \|", section, re.MULTILINE)) == fields


def test_every_check_is_documented() -> None:
    source = "".join(path.read_text() for path in (ROOT / "src/tenure/contrib/django").glob("*.py"))
    raised = set(re.findall(r'id="(tenure\.[EW]\d+)"', source))
    assert set(re.findall(r"^\| `(tenure\.[EW]\d+)` \|", REFERENCE, re.MULTILINE)) == raised


def test_every_permission_is_documented() -> None:
    own = {f"tenure.{name}" for name, _ in Job._meta.permissions} | {"tenure.view_job"}
    assert set(re.findall(r"^\| `(tenure\.[a-z_]+)` \|", REFERENCE, re.MULTILINE)) == own


def test_the_table_of_priorities_is_the_codes() -> None:
    found = re.search(r"^\| `priority` \|(.*)\|\n.*\n\| Tenure's \|(.*)\|", REFERENCE, re.MULTILINE)
    assert found is not None
    covered: list[int] = []
    for theirs, ours in zip(found[1].split("|"), found[2].split("|"), strict=True):
        ends = [int(number) for number in theirs.replace("−", "-").split("…")]
        between = range(ends[0], ends[-1] + 1)
        assert {priority(each) for each in between} == {int(ours)}
        covered += between
    assert covered == list(range(-100, 101))
