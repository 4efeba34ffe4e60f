"""What the pages for operators show fits the code: units, probes, lines of the log."""

from __future__ import annotations

import re
import shlex
from configparser import ConfigParser
from pathlib import Path
from typing import Any

import typer
import yaml

from tenure.cli.commands import app

ROOT = Path(__file__).parents[2]
GUIDES = ROOT / "docs" / "how-to"
COMMAND = typer.main.get_command(app)
TO_SPARE = 5
FENCED = re.compile(r"^```(?P<kind>\w+)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)


def block(page: str, kind: str) -> str:
    """The one block of its kind on a page."""
    [found] = [f for f in FENCED.finditer((GUIDES / page).read_text()) if f["kind"] == kind]
    return found["text"]


def told(words: list[str]) -> dict[str, Any]:
    """What a command line of `tenure` means, as the command itself would read it."""
    name, *rest = words
    command = COMMAND.commands[name]  # type: ignore[attr-defined]  # It is a group.
    # `tenure worker` is a group whose own command runs a worker.
    command = getattr(command, "commands", {}).get("run", command)
    context = command.make_context(name, rest, resilient_parsing=False)
    return dict(context.params)


def unit() -> ConfigParser:
    """The unit for systemd."""
    parser = ConfigParser(interpolation=None)
    parser.optionxform = str  # type: ignore[assignment,method-assign]  # Names keep their case.
    parser.read_string(block("production.md", "ini"))
    return parser


def container() -> tuple[dict[str, Any], dict[str, Any]]:
    """The pod of the Deployment, and its one container."""
    pod = yaml.safe_load(block("production.md", "yaml"))["spec"]["template"]["spec"]
    [one] = pod["containers"]
    return pod, one


def test_the_unit_starts_a_worker_and_waits_longer_than_its_grace() -> None:
    service = unit()["Service"]
    program, *words = shlex.split(service["ExecStart"])
    assert program.endswith("/tenure")
    worker = told(words)
    assert worker["target"] == "jobs:app"
    assert int(service["TimeoutStopSec"]) >= worker["grace"] + TO_SPARE
    assert service["KillMode"] == "mixed"


def test_the_unit_leaves_the_state_file_where_its_user_may_write() -> None:
    service = unit()["Service"]
    assert service["Environment"] == f"TENURE_RUN_DIR=/run/{service['RuntimeDirectory']}"


def test_the_pod_starts_a_worker_waits_longer_than_its_grace_and_is_probed() -> None:
    pod, one = container()
    program, *words = one["command"]
    assert program == "tenure"
    worker = told(words)
    assert pod["terminationGracePeriodSeconds"] >= worker["grace"] + TO_SPARE
    program, *words = one["livenessProbe"]["exec"]["command"]
    assert program == "tenure"
    assert told(words) == {"name": None, "as_json": False}


def test_every_line_of_the_log_that_the_guide_quotes_is_in_the_reference() -> None:
    """A line of the log is what is quoted in several words, and is no command and no call."""
    reference = (ROOT / "docs/reference/worker.md").read_text()
    explained = set(quoted(reference.partition("## What the log says")[2]))
    guide = FENCED.sub("", (GUIDES / "what-happens-when.md").read_text())
    lines = {
        text
        for text in quoted(guide)
        if " " in text and not re.match(r"async def|(tenure|just|SELECT|journalctl) ", text)
    } - {"await asyncio.to_thread(…)"}
    assert len(lines) > 12
    assert lines <= explained, lines - explained


def quoted(text: str) -> list[str]:
    """What stands in code marks within a line."""
    return re.findall(r"`([^`\n]+)`", text)
