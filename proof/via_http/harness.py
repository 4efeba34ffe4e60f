"""The bed of the crash suite with a server in the middle: workers know its address alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from proof.crash import accounts
from proof.crash.harness import Bed
from proof.crash.history import REFUSED
from proof.crash.way import Way
from proof.via_http import jobs
from proof.via_http.parent import WORK
from proof.via_http.server import Server
from tenure import Tenure
from tenure.admin import By

if TYPE_CHECKING:
    from pathlib import Path
    from random import Random

    from proof.crash.fleet import Shape
    from proof.report import Report


class HttpBed(Bed):
    """One database, one server, and workers over HTTP. Leave it, and all have ended."""

    def __init__(
        self, url: str, directory: Path, shape: Shape, rng: Random, bug: str | None
    ) -> None:
        app = Tenure(url)
        made = app.admin.tokens.create("proof", By("proof"), scopes=["work"])
        app.close()
        self.url, self.token = url, made.secret
        self.server = Server(directory / "server.log")
        beside = {"PROOF_SERVER": self.server.url, "PROOF_TOKEN": self.token}
        super().__init__(url, directory, shape, rng, bug, work=WORK, beside=beside)

    def _come_up(self) -> None:
        try:
            self.start_server()
            super()._come_up()
        except BaseException:
            self.server.end()
            raise

    def start_server(self) -> None:
        """Start it, or start it again."""
        self.server.start(self.environment)

    def __exit__(self, *ended: object) -> None:
        super().__exit__(*ended)
        self.server.end()


def settle(bed: Bed, report: Report) -> None:
    """The accounts of every way, and those of the reports."""
    accounts.settle(bed, report, answering=[*jobs.HANDLERS], entering=None)
    kept = {*bed.rows("SELECT i.job_id, i.key::bigint FROM tenure.job_item AS i")}
    values = {phase: {*bed.history.periods(phase)} for phase in (*jobs.PHASES, REFUSED)}
    report.note("reports kept", len(kept))
    report.none("reports that were answered and are not kept", values["reported"] - kept)
    report.none("reports that no handler says it sent", kept - values["reporting"])
    report.none("reports refused and yet kept", kept & values[REFUSED])


HTTP = Way(
    killed=jobs.killed,
    stopped=jobs.stopped,
    waiting=jobs.waiting,
    phases=jobs.PHASES,
    stop_at=("reported", "begun", "reporting"),
    settle=settle,
)
