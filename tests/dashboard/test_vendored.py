"""What is not ours among the files of the pages: known by name, licence and hash, and small."""

from __future__ import annotations

import gzip
import hashlib
import json
from pathlib import Path

STATIC = Path("src/tenure/server/dashboard/static")
VENDOR = STATIC / "vendor"
MOST = 60_000


def test_the_manifest_tells_of_every_file() -> None:
    manifest = json.loads((VENDOR / "MANIFEST.json").read_text())
    there = {file.name for file in VENDOR.iterdir() if file.suffix not in (".json", ".LICENSE")}
    assert there == set(manifest)
    for name, answer in manifest.items():
        assert hashlib.sha256((VENDOR / name).read_bytes()).hexdigest() == answer["sha256"]
        assert (VENDOR / answer["licence"].split(", ")[1]).exists()


def test_all_of_it_is_small() -> None:
    sent = [file for file in STATIC.rglob("*") if file.suffix in (".js", ".css", ".svg")]
    assert sum(len(gzip.compress(file.read_bytes())) for file in sent) <= MOST
