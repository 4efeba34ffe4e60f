"""The units, images, manifests and log lines on the pages for operators match the code."""

from __future__ import annotations

import json
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
FENCED = re.compile(r"^(```|~~~)(?P<kind>\w+)\n(?P<text>.*?)^\1$", re.MULTILINE | re.DOTALL)


def block(page: str, kind: str, contains: str = "") -> str:
    """The one block of its kind on a page, or the one with this text in it."""
    blocks = FENCED.finditer((GUIDES / page).read_text())
    [text] = [b["text"] for b in blocks if b["kind"] == kind and contains in b["text"]]
    return text


def parse(words: list[str]) -> dict[str, Any]:
    """Parse a command line of `tenure` as the command itself does."""
    name, *rest = words
    command = COMMAND.commands[name]  # type: ignore[attr-defined]  # It is a group.
    # `tenure worker` is a group whose own command runs a worker.
    command = getattr(command, "commands", {}).get("run", command)
    context = command.make_context(name, rest, resilient_parsing=False)
    return dict(context.params)


def unit() -> ConfigParser:
    """The unit for systemd on the page."""
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
    worker = parse(words)
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
    worker = parse(words)
    assert pod["terminationGracePeriodSeconds"] >= worker["grace"] + TO_SPARE
    program, *words = one["livenessProbe"]["exec"]["command"]
    assert program == "tenure"
    assert parse(words) == {"name": None, "as_json": False}


def test_the_image_starts_a_worker_without_a_shell_and_is_probed() -> None:
    lines = block("production.md", "dockerfile").splitlines()
    [command] = [json.loads(line[4:]) for line in lines if line.startswith("CMD ")]
    [probe] = [json.loads(line.partition(" CMD ")[2]) for line in lines if "HEALTHCHECK" in line]
    assert command[0] == probe[0] == "tenure"
    assert parse(command[1:])["target"] == "jobs:app"
    assert parse(probe[1:]) == {"name": None, "as_json": False}


def test_the_procfile_starts_a_worker_that_ends_within_thirty_seconds() -> None:
    lines = dict(
        line.split(": ", 1) for line in block("production.md", "text", "release: ").splitlines()
    )
    assert lines["release"] == "tenure db migrate"
    program, *words = shlex.split(lines["worker"])
    assert program == "tenure"
    assert parse(words)["grace"] + TO_SPARE <= 30


def test_every_line_of_the_log_that_the_guide_quotes_is_in_the_reference() -> None:
    """A line of the log is quoted with several words, and is neither a command nor a call."""
    reference = (ROOT / "docs/reference/logs.md").read_text()
    explained = set(quoted(reference.partition("## Log lines")[2]))
    guide = FENCED.sub("", (GUIDES / "what-happens-when.md").read_text())
    lines = {
        text
        for text in quoted(guide)
        if " " in text and not re.match(r"async def|(tenure|just|SELECT|journalctl) ", text)
    } - {"await asyncio.to_thread(…)"}
    assert len(lines) > 12
    assert lines <= explained, lines - explained


def quoted(text: str) -> list[str]:
    """Return the texts in code marks."""
    return re.findall(r"`([^`\n]+)`", text)
