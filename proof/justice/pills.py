"""Jobs that take their whole worker down, each in a bed of its own with innocents next to it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from proof.crash.fleet import Shape
from proof.justice import judge, program
from proof.justice.cast import Cast
from proof.justice.harness import job
from proof.justice.over_http import HttpBed

if TYPE_CHECKING:
    from proof.justice.harness import Bed
    from proof.justice.stage import Stage

# Counted losses of whole workers, and deaths in all of a job whose cursor moves.
WORKER_LOSSES, DEATHS = 10, 100
# One loss with the whole worker may be of a job that is not known to have started.
_UNKNOWN = 1
_SHORT = 4
_NEIGHBORS, _MANY = 6, 500


@dataclass
class Pill:
    """One pill. In the short form it is watched for a few deaths, and must outlive them."""

    stage: Stage
    title: str
    bed: Bed
    after: float
    neighbors: int
    kinds: tuple[str, ...]
    steps: bool = False
    job: int = 0
    cast: Cast = field(init=False)

    def __post_init__(self) -> None:
        self.cast = Cast(self.bed)

    def start(self) -> None:
        """Enqueue it among its neighbors."""
        self.cast.add(self.neighbors // 2, 0.5, kinds=self.kinds)
        # A worker over HTTP has no cursor to move, and is not asked to.
        args: dict[str, Any] = {"steps": True} if self.steps else {}
        pill = job("crash_worker", max_attempts=20, after=self.after, **args)
        [self.job] = self.bed.enqueue([pill])
        self.cast.add(self.neighbors - self.neighbors // 2, 0.5, kinds=self.kinds)

    @property
    def deaths(self) -> int:
        """How often it took its worker down, by the ledger."""
        return judge.deaths(self.bed.ledger.marks)[self.job]

    @property
    def is_over(self) -> bool:
        """Whether all has ended, or enough was seen."""
        if self.stage.short and self.deaths >= _SHORT:
            return not judge.unfinished(self.cast.ids, self.bed.fates())
        return self.bed.count("SELECT count(*) FROM tenure.job") == 0

    def tick(self) -> None:
        """Restart the worker, as a service manager does."""
        self.bed.supervise()
        self.bed.ledger.read()

    def judge(self) -> None:
        """Judge the pill and its neighbors."""
        stage, report = self.stage, self.stage.report
        report.part(self.title)
        report.jobs += self.neighbors + 1
        fates, deaths = self.bed.fates(), self.deaths
        for _ in range(deaths):
            report.fault("a job took its whole worker down")
        fate = fates.get(self.job)
        report.note("deaths of its worker", deaths)
        cap = DEATHS if self.steps else WORKER_LOSSES
        early = fate is not None and fate.state == "failed" and deaths < cap
        report.none("pills ended too early", [f"after {deaths}: {fate}"] if early else [])
        if not stage.short:
            report.none("pills that did not end as poison", judge.not_poison([self.job], fates))
            counted = (fate.deaths if self.steps else fate.worker_losses) if fate else None
            report.none(
                f"pills not ended by exactly {cap} counted losses",
                judge.not_exactly(cap, [self.job], {self.job: counted or 0}),
            )
            report.at_most("deaths that were not counted", deaths - cap, _UNKNOWN)
        stage.acquit(self.bed, self.cast.innocents, None)


def pills(stage: Stage) -> list[Pill]:
    """All pills of a run; in the short form those without a parent."""
    one = Shape(workers=1, processes=1, slots=8)
    in_program = stage.bed("in-program", one, work=program.WORK)
    url = stage.databases.create(stage.template)
    over_http = HttpBed(url, stage.directory / "over-http", one, stage.lease)
    found = [
        Pill(stage, "a pill under app.run()", in_program, 0.3, _NEIGHBORS, ("nap", "doze")),
        Pill(stage, "a pill over HTTP", over_http, 0.3, _NEIGHBORS, ("nap",)),
    ]
    if stage.short:
        return found
    kinds = ("nap", "doze", "toil")
    found += [
        Pill(stage, "a pill that takes the only worker", stage.bed("only", one), 1.5, _MANY, kinds),
        Pill(stage, "a pill in its first second", stage.bed("first", one), 0.0, _NEIGHBORS, kinds),
        Pill(
            stage,
            "a pill that moves its cursor",
            stage.bed("steps", one),
            0.1,
            _NEIGHBORS,
            kinds,
            steps=True,
        ),
    ]
    return found
