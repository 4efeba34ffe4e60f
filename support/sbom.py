"""A software bill of materials for a release, as CycloneDX 1.6 JSON.

It lists what runs in a user's process: the dependencies of Tenure and its extras, at the versions
that the tests ran on, and the scripts that the dashboard ships. It depends on the source tree
alone, so building it twice gives the same bytes.
"""

import json
import re
import tomllib
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, uuid5

_VENDOR = "src/tenure/server/dashboard/static/vendor/MANIFEST.json"
_LOCKED = re.compile(r"^([\w.-]+)(?:\[[\w,]+\])?==([\w.]+)")
_ROOT = "tenure"
# The lock names it under psycopg, but only the extra `binary` asks for it.
_ONLY_BY_EXTRA = {"psycopg-binary"}


def sbom(tree: Path, *, built_at: int, commit: str) -> str:
    """Return the SBOM of a source tree."""
    project = tomllib.loads((tree / "pyproject.toml").read_text())["project"]
    versions, needs = _graph((tree / "requirements-dev.lock").read_text())
    core = {_name(line) for line in project["dependencies"]}
    extras = {_name(each) for lines in project["optional-dependencies"].values() for each in lines}
    everything = _closure(core | extras, needs)
    required = _closure(core, needs) - _ONLY_BY_EXTRA
    if missing := sorted(everything - versions.keys()):
        raise ValueError(
            f"requirements-dev.lock must have every dependency, got none of {missing}; "
            "run: just lock"
        )
    purl = f"pkg:pypi/{_ROOT}@{project['version']}"
    packages = [
        {
            "type": "library",
            "bom-ref": _purl(name, versions),
            "name": name,
            "version": versions[name],
            "purl": _purl(name, versions),
            "scope": "required" if name in required else "optional",
        }
        for name in sorted(everything)
    ]
    scripts = _scripts(json.loads((tree / _VENDOR).read_text()))
    edges = [
        {
            "ref": _purl(name, versions),
            "dependsOn": [_purl(each, versions) for each in sorted(needs[name] & everything)],
        }
        for name in sorted(everything)
    ]
    direct = [_purl(name, versions) for name in sorted(core | extras)]
    document = {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid5(NAMESPACE_URL, f'{purl}#{commit}')}",
        "version": 1,
        "metadata": {
            "timestamp": datetime.fromtimestamp(built_at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "component": {
                "type": "library",
                "bom-ref": purl,
                "name": _ROOT,
                "version": project["version"],
                "licenses": [{"license": {"id": project["license"]}}],
                "purl": purl,
                "properties": [{"name": "tenure:commit", "value": commit}],
            },
        },
        "components": packages + scripts,
        "dependencies": [
            {"ref": purl, "dependsOn": direct + [each["bom-ref"] for each in scripts]},
            *edges,
        ],
    }
    return json.dumps(document, indent=1) + "\n"


def _graph(lock: str) -> tuple[dict[str, str], dict[str, set[str]]]:
    """Return a lock's versions, and the dependencies of each package from its `# via` comments."""
    versions: dict[str, str] = {}
    needs: dict[str, set[str]] = {}
    name = ""
    for line in lock.splitlines():
        if match := _LOCKED.match(line):
            name = match[1]
            versions[name] = match[2]
            needs.setdefault(name, set())
        elif match := re.fullmatch(r"    #(?: via)?\s+([\w.-]+)", line):
            needs.setdefault(match[1], set()).add(name)
    return versions, needs


def _closure(names: set[str], needs: dict[str, set[str]]) -> set[str]:
    found: set[str] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += needs.get(name, ())
    return found


def _scripts(manifest: dict[str, dict[str, str]]) -> list[dict[str, Any]]:
    scripts = []
    for _, entry in sorted(manifest.items()):
        # As in "npm htmx.org 4.0.0, dist/htmx.min.js".
        _, name, version, path = entry["from"].replace(",", "").split()
        purl = f"pkg:npm/{name}@{version}#{path}"
        scripts.append(
            {
                "type": "library",
                "bom-ref": purl,
                "name": name,
                "version": version,
                "hashes": [{"alg": "SHA-256", "content": entry["sha256"]}],
                "licenses": [{"license": {"id": entry["licence"].partition(",")[0]}}],
                "purl": purl,
                "scope": "optional",
            }
        )
    return scripts


def _name(line: str) -> str:
    return re.split(r"[^\w.-]", line, maxsplit=1)[0].lower()


def _purl(name: str, versions: dict[str, str]) -> str:
    return f"pkg:pypi/{name}@{versions[name]}"
