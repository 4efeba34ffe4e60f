"""systemd accepts the units of the guides, with the options that the hardening guide explains."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = {"server.md": "tenure-server.service", "production.md": "shop-worker.service"}


def unit(page: str) -> str:
    text = (ROOT / "docs/how-to" / page).read_text()
    [found] = re.findall(r"```ini\n# \S+\.service\n(.*?)```", text, re.DOTALL)
    return str(found)


@pytest.mark.parametrize("page", PAGES)
def test_unit_has_the_options_that_the_guide_explains(page: str) -> None:
    guide = (ROOT / "docs/how-to/harden.md").read_text()
    options = set(re.findall(r"^(\w+)=", unit(page).split("# Hardening")[1], re.MULTILINE))
    options -= {"WantedBy"}
    assert {"NoNewPrivileges", "ProtectSystem", "PrivateTmp", "LimitNOFILE"} <= options
    explained = {name for name in options if name.startswith("ProtectKernel") or name in guide}
    assert explained == options


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd is not installed")
@pytest.mark.parametrize("page", PAGES)
def test_systemd_accepts_the_unit_and_finds_little_exposed(page: str, tmp_path: Path) -> None:
    file = tmp_path / PAGES[page]
    # The program and its user are not on this machine.
    text = re.sub(r"^ExecStart=\S+", "ExecStart=/bin/true", unit(page), flags=re.MULTILINE)
    file.write_text(re.sub(r"^User=\w+", "User=daemon", text, flags=re.MULTILINE))
    checked = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(file)],  # noqa: S607 - found above
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert file.name not in checked.stderr, checked.stderr
    exposed = subprocess.run(
        ["systemd-analyze", "security", "--offline=true", "--threshold=40", str(file)],  # noqa: S607 - found above
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert exposed.returncode == 0, exposed.stdout[-300:]
