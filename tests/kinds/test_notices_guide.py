"""The examples of the guide verify what Tenure signs, in Python and in Node."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import time
from typing import TYPE_CHECKING, Any

import pytest

from support.binaries import ROOT
from tenure.kinds.http.signature import sign

if TYPE_CHECKING:
    from pathlib import Path

GUIDE = (ROOT / "docs/how-to/notices.md").read_text()
OLD = "whsec_b2xkb2xkb2xkb2xkb2xkb2xkb2xkb2xk"
NEW = "whsec_bmV3bmV3bmV3bmV3bmV3bmV3bmV3bmV3"
OTHER = "whsec_ZWxzZWVsc2VlbHNlZWxzZWVsc2VlbHNl"
BODY = b'{"type":"job.failed","data":{"error":"\xc3\xbcber"}}'


def block(language: str) -> str:
    [text] = re.findall(rf"```{language}\n((?:#|//) receiver.*?)```", GUIDE, re.DOTALL)
    return str(text)


def headers(*secrets: str, at: float = 0.0) -> dict[str, str]:
    now = int(time.time() + at)
    return {
        "webhook-id": "tenure:1",
        "webhook-timestamp": str(now),
        "webhook-signature": sign(secrets, "ops", "tenure:1", now, BODY),
    }


# The secret of the receiver, the secrets and the age of the request, its body, and the verdict.
CASES = {
    "signed": (NEW, [NEW], 0, BODY, True),
    "rotated, new": (NEW, [NEW, OLD], 0, BODY, True),
    "rotated, old": (OLD, [NEW, OLD], 0, BODY, True),
    "another secret": (OTHER, [NEW, OLD], 0, BODY, False),
    "another body": (NEW, [NEW], 0, BODY + b" ", False),
    "too old": (NEW, [NEW], -301, BODY, False),
}


@pytest.mark.parametrize("case", CASES)
def test_the_python_example_verifies(case: str) -> None:
    secret, secrets, at, body, valid = CASES[case]
    given = headers(*secrets, at=at)
    names: dict[str, Any] = {}
    exec(block("python"), names)  # noqa: S102 - the guide's own code
    if valid:
        names["verify"](secret, given, body)
    else:
        with pytest.raises(ValueError, match="the "):
            names["verify"](secret, given, body)


def test_the_node_example_verifies(tmp_path: Path) -> None:
    node = shutil.which("node")
    assert node is not None, "npm comes with node"
    (tmp_path / "receiver.mjs").write_text(block("js"))
    (tmp_path / "run.mjs").write_text(
        'import { verify } from "./receiver.mjs";\n'
        'import { readFileSync } from "node:fs";\n'
        'const cases = JSON.parse(readFileSync("cases.json"));\n'
        "const answers = cases.map(([secret, headers, body]) => {\n"
        "  try { verify(secret, headers, body); return true } catch { return false }\n"
        "});\n"
        "console.log(JSON.stringify(answers));\n"
    )
    cases = [
        (secret, headers(*secrets, at=at), body.decode())
        for secret, secrets, at, body, _ in CASES.values()
    ]
    (tmp_path / "cases.json").write_text(json.dumps(cases))
    ran = subprocess.run(
        [node, "run.mjs"], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True
    )
    assert json.loads(ran.stdout) == [valid for *_, valid in CASES.values()]
