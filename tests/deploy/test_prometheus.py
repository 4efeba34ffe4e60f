"""Prometheus accepts the alert rules, and rules and dashboard use only existing metrics."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from support.promtool import promtool
from tenure._metrics import SERVER, WORKER, MetricKind

ROOT = Path(__file__).parents[2]
RULES = ROOT / "deploy/prometheus/rules.yml"
TESTS = ROOT / "deploy/prometheus/rules.test.yml"
DASHBOARD = ROOT / "deploy/grafana/tenure.json"
METRICS = {metric.name: metric for metric in (*SERVER, *WORKER)}
PARTS = {
    f"{metric.name}{part}": metric
    for metric in METRICS.values()
    if metric.kind is MetricKind.HISTOGRAM
    for part in ("_bucket", "_sum", "_count")
}


def rules() -> list[dict[str, Any]]:
    [group] = yaml.safe_load(RULES.read_text())["groups"]
    alerts: list[dict[str, Any]] = group["rules"]
    return alerts


def expressions() -> list[str]:
    """The queries of the rules and the dashboard."""
    dashboard = json.loads(DASHBOARD.read_text())
    panels = [
        target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", [])
    ]
    return [*(rule["expr"] for rule in rules()), *panels]


def test_prometheus_accepts_the_rules_and_each_fires_when_it_should() -> None:
    """Shows R15, R37."""
    assert "SUCCESS: 20 rules found" in promtool("check", "rules", str(RULES))
    assert promtool("test", "rules", str(TESTS)).strip().endswith("SUCCESS")


def test_every_alert_has_a_test_and_a_row_on_the_page() -> None:
    names = [rule["alert"] for rule in rules()]
    tested = set(re.findall(r'expr: .ALERTS\{alertname="(\w+)"', TESTS.read_text()))
    page = (ROOT / "docs/how-to/monitoring.md").read_text()
    rows = dict(re.findall(r"^\| `(Tenure\w+)` \| (now|today) \|", page, re.MULTILINE))
    assert tested == set(names)
    reactions = {"page": "now", "ticket": "today"}
    assert rows == {rule["alert"]: reactions[rule["labels"]["severity"]] for rule in rules()}


def test_every_alert_says_what_and_what_to_do_by_commands_that_there_are() -> None:
    commands = re.findall(r"^## `(tenure(?: [a-z]+)*)", _commands(), re.MULTILINE)
    for rule in rules():
        annotations = rule["annotations"]
        assert annotations.keys() == {"summary", "description"}
        for command in re.findall(r"`(tenure(?: [a-z]+)+)", annotations["description"]):
            known = any(command == one or command.startswith(f"{one} ") for one in commands[1:])
            assert known, command


def _commands() -> str:
    return (ROOT / "docs/reference/commands.md").read_text()


@pytest.mark.parametrize("expression", expressions())
def test_every_metric_and_label_that_is_used_is_one_that_there_is(expression: str) -> None:
    used = re.findall(r"\b(tenure_\w+)(?:\{(.*?)\})?", expression)
    assert used
    for name, matchers in used:
        metric = METRICS.get(name) or PARTS[name]
        labels = set(re.findall(r"(\w+)(?:=~|!=|=)", matchers))
        assert labels <= {*metric.labels, "le", "instance"}, name
        if metric.kind is MetricKind.COUNTER:
            assert re.search(rf"(rate|increase)\({name}", expression), name


def test_every_grouping_is_by_labels_of_what_is_grouped() -> None:
    labels = {label for metric in METRICS.values() for label in metric.labels}
    for expression in expressions():
        for group in re.findall(r"by \((.*?)\)", expression):
            assert {name.strip() for name in group.split(",")} <= labels | {"le", "instance"}
