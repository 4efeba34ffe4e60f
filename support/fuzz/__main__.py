"""`python -m support.fuzz [--cases N] [--seconds S] [--seed N]`: ask every route, by Schemathesis.

A finding is an answer of 5xx, or one that is not as the OpenAPI document says: its status, its
content type, its body. The exit code is 1 if there is one.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from hypothesis.errors import HypothesisException
from schemathesis.checks import not_a_server_error
from schemathesis.core.failures import FailureGroup
from schemathesis.core.result import Err, Ok
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from support.cluster import Cluster
from support.databases import Databases
from support.fuzz.stage import Stage
from support.serving import serving
from support.store import install

if TYPE_CHECKING:
    from schemathesis import APIOperation

    from support.fuzz.stage import AnyCase
    from support.serving import Service

    Operation = APIOperation[Any, Any, Any, Any]

_CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]
_MODES = (schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE)
_SHOWN = 3000
# The most requests that a route gets before the next one's turn.
_AT_A_TIME = 20


class Run:
    """All that was asked, what was answered, and what of that is a finding."""

    def __init__(self, service: Service, *, until: float) -> None:
        self._session = requests.Session()
        self._session.headers["Authorization"] = f"Bearer {service.secret}"
        self._url = service.url
        self._until = until
        self.stage = Stage(service)
        self.sent: Counter[str] = Counter()
        self.answered: Counter[int] = Counter()
        self.findings: dict[tuple[str, str], str] = {}

    @property
    def is_over(self) -> bool:
        """Whether the time is up."""
        return time.monotonic() > self._until

    def ask(self, operation: Operation, cases: int, number: int) -> None:
        """Send this many requests to a route, by this seed; half of them are wrong."""
        for mode in _MODES:
            try:
                self._ask(operation, mode, cases // len(_MODES), number)
            except HypothesisException as error:
                # A route that takes nothing cannot be asked wrongly.
                print(f"{operation.label}, {mode.value}: {type(error).__name__}", file=sys.stderr)

    def _ask(
        self, operation: Operation, mode: schemathesis.GenerationMode, cases: int, number: int
    ) -> None:
        @seed(number)
        @settings(
            max_examples=cases,
            database=None,
            deadline=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(operation.as_strategy(generation_mode=mode), st.integers(0, 2**32))
        def send(case: AnyCase, pick: int) -> None:
            self.stage.fit(case, pick)
            self._send(case)

        send()

    def _send(self, case: AnyCase) -> None:
        label = case.operation.label
        self.sent[label] += 1
        try:
            answer = case.call(base_url=self._url, session=self._session, timeout=60)
            self.answered[answer.status_code] += 1
            case.validate_response(answer, checks=_CHECKS)
        except FailureGroup as group:
            for failure in group.exceptions:
                self.findings.setdefault((label, type(failure).__name__), str(group)[:_SHOWN])
        except requests.RequestException as error:
            self.findings.setdefault((label, type(error).__name__), f"{error}\n{case!r}"[:_SHOWN])


def main() -> int:
    """Fuzz, and tell what was found."""
    options = _arguments()
    with (
        tempfile.TemporaryDirectory() as directory,
        Cluster(15, in_memory=True) as cluster,
        serving(_database(cluster), Path(directory)) as service,
    ):
        began = time.monotonic()
        run = Run(service, until=began + options.seconds)
        operations = _operations(service)
        each = max(min(options.cases // len(operations), _AT_A_TIME), len(_MODES))
        # At least once round, however slow the machine is.
        for number in itertools.count(options.seed):
            for operation in operations:
                run.ask(operation, each, number)
            if run.is_over or run.sent.total() >= options.cases:
                break
            # What is there is used up: deleted, revoked, aborted.
            run.stage.set()
        lasted = time.monotonic() - began
        if run.findings:
            print(service.words.read_text()[-20_000:], file=sys.stderr)
    return _tell(run, len(operations), lasted, options.seed)


def _operations(service: Service) -> list[Operation]:
    """The routes that the server says it has."""
    headers = {"Authorization": f"Bearer {service.secret}"}
    document = requests.get(f"{service.url}/openapi.json", headers=headers, timeout=30).json()
    # Who is let in is shown by the tests of access; here everybody is.
    del document["components"]["securitySchemes"]
    for route in (route for methods in document["paths"].values() for route in methods.values()):
        route.pop("security", None)
    found = list(schemathesis.openapi.from_dict(document).get_all_operations())
    for one in found:
        if isinstance(one, Err):
            raise one.err()
    return [one.ok() for one in found if isinstance(one, Ok)]


def _database(cluster: Cluster) -> str:
    databases = Databases(cluster)
    return databases.create(databases.template("tenure", install))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="just fuzz", description=__doc__)
    parser.add_argument("--cases", type=int, default=20_000, help="how many, over all routes")
    parser.add_argument("--seconds", type=float, default=7200, help="and no longer than this")
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


def _tell(run: Run, routes: int, lasted: float, seeded: int) -> int:
    for (label, kind), what in run.findings.items():
        print(f"\n{label}: {kind}\n{what}")
    answered = ", ".join(f"{status}: {count:,}" for status, count in sorted(run.answered.items()))
    print(
        f"{run.sent.total():,} cases over {len(run.sent)} of {routes} routes in {lasted:.0f} s, "
        f"seed {seeded}; {len(run.findings)} findings; answers {answered}"
    )
    return 1 if run.findings or len(run.sent) < routes else 0


if __name__ == "__main__":
    sys.exit(main())
