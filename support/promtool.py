"""Debian's promtool: what Prometheus itself thinks of metrics and rules."""

from __future__ import annotations

import subprocess


def promtool(*arguments: str, given: str = "") -> str:
    """What it has to say; empty if it finds no fault with metrics."""
    done = subprocess.run(
        ["promtool", *arguments],  # noqa: S607 - wherever it is installed
        input=given.encode(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=60,
        check=False,
    )
    output = done.stdout.decode()
    return output if done.returncode == 0 else f"exit code {done.returncode}: {output}"
