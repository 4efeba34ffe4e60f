"""`python -m support.rights [--cases N] [--seed N]`: run the matrix. Exits with 1 on a finding."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from support import rights
from support.cluster import Cluster
from support.databases import Databases
from support.serving import serving
from support.store import install


def main() -> int:
    """Run the matrix, and print what was found."""
    parser = argparse.ArgumentParser(prog="just rights", description=__doc__)
    parser.add_argument("--cases", type=int, default=20_000, help="how many, over all routes")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as directory,
        Cluster(15, in_memory=True) as cluster,
        serving(_database(cluster), Path(directory)) as service,
    ):
        began = time.monotonic()
        result = rights.run(service, count=options.cases, number=options.seed)
        lasted = time.monotonic() - began
    for finding in result.findings[:50]:
        print(finding)
    answers = ", ".join(f"{status}: {count:,}" for status, count in sorted(result.answers.items()))
    print(
        f"{result.cases:,} cases over {result.routes} routes in {lasted:.0f} s, seed "
        f"{options.seed}; {len(result.findings)} findings; answers {answers}"
    )
    return bool(result.findings)


def _database(cluster: Cluster) -> str:
    databases = Databases(cluster)
    return databases.create(databases.template("tenure", install))


if __name__ == "__main__":
    sys.exit(main())
