"""From an enqueue to the first line of its handler, at Poisson arrivals: 20/s beside PgQueuer, and
500/s one by one and inside callers' transactions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bench.peers import environments
from bench.speed.contender import Contender, tenure
from bench.speed.meters import family_seconds
from bench.speed.producing import answers
from bench.speed.streams import stream, warm
from bench.speed.waits import Waits, beside
from bench.witness import witness
from bench.workers import until

if TYPE_CHECKING:
    from bench.report import Report
    from bench.server import Server
    from bench.speed.contender import Place
    from bench.witness import Stalls

LIGHT, HEAVY, HELD = 20, 500, 0.020
P50, P99, RATIO = 4, 50, 1.3
Spans = list[tuple[float, float]]


def run(server: Server, report: Report) -> None:
    report.forget("arrive:", "bar:arrive:")
    rounds, seconds = (1, 8) if report.short else (3, 30)
    light(
        server,
        report,
        peer="not in the short form" if report.short else _pgqueuer(),
        rounds=rounds,
        length=seconds,
    )
    for held, how in ((0.0, "one by one"), (HELD, "inside transactions of 0–20 ms, from COMMIT")):
        report.title(f"Enqueue to start at {HEAVY}/s, {how}, for {seconds} s")
        with witness() as stalls:
            spans, commits, arrived, shares = _heavy(server, seconds, held)
        waits = _tell(report, f"arrive:{HEAVY}:{how}", "tenure", spans, stalls)
        report.line(
            f"arrive:{HEAVY}:{how}:shares",
            f"    of that the call that commits: {commits}; {arrived:.0f}/s came; of one core: "
            f"database {shares[0]:.0%}, worker {shares[1]:.0%}",
            came=arrived,
            database=shares[0],
            worker=shares[1],
            commit=commits.figures(),
        )
        report.bar(f"arrive:{HEAVY}:{how}:p99", f"p99 at {HEAVY}/s, {how}", waits.p99, P99, " ms")


def light(
    server: Server, report: Report, *, peer: Contender | str, rounds: int, length: int
) -> None:
    """20/s, in alternation with the peer, if there is one."""
    report.title(f"Enqueue to start at {LIGHT}/s, {rounds} times {length} s, in alternation")
    subjects = {"tenure": tenure("stamp")}
    if isinstance(peer, Contender):
        subjects["PgQueuer"] = peer
    spans: dict[str, Spans] = {name: [] for name in subjects}
    with witness() as stalls:
        for seed in range(rounds):
            for name, contender in subjects.items():
                spans[name] += _light(server, contender, length, seed)
    ours = _tell(report, f"arrive:{LIGHT}:tenure", "tenure", spans["tenure"], stalls)
    report.bar(f"arrive:{LIGHT}:p50", f"p50 at {LIGHT}/s", ours.p50, P50, " ms")
    if isinstance(peer, str):
        report.line(f"arrive:{LIGHT}:PgQueuer", f"  PgQueuer: not measured: {peer}", why=peer)
        return
    theirs = _tell(report, f"arrive:{LIGHT}:PgQueuer", "PgQueuer", spans["PgQueuer"], stalls)
    ratio = ours.p99 / theirs.p99
    report.bar(f"arrive:{LIGHT}:p99", f"p99 at {LIGHT}/s against PgQueuer's", ratio, RATIO, " ×")


def _light(server: Server, contender: Contender, length: int, seed: int) -> Spans:
    with contender.place(server) as place, contender.work(place) as running:
        _arrive(contender, place, 2, 1000 + seed)  # It only warms.
        spans = _arrive(contender, place, length, seed)
        running.check()
        return spans


def _arrive(contender: Contender, place: Place, seconds: int, seed: int) -> Spans:
    (place.directory / "stamps").write_bytes(b"")
    sent: list[float] = contender.call(place, "arrive", LIGHT, seconds, seed)["sent"]
    until(lambda: len(place.stamps()) >= len(sent), 30)
    began = place.stamps()
    return [(at, began[number]) for number, at in enumerate(sent)]


def _heavy(server: Server, seconds: int, held: float) -> tuple[Spans, Waits, float, list[float]]:
    """Spans of jobs, waits for the calls that commit, how many came a second, and the shares of a
    core that database and worker took."""
    contender = tenure("stamp")
    with contender.place(server) as place, warm(contender, place) as running:
        families = (place.server, running.pid)
        before = [family_seconds(pid) for pid in families]
        found = stream(place, "callers", HEAVY, seconds, 1, held, 5, seconds=seconds)
        after = [family_seconds(pid) for pid in families]
        calls = answers(place)
        took = max(end for _, end in calls) - min(at for at, _ in calls)
        shares = [(b - a) / took for a, b in zip(before, after, strict=True)]
        return list(found.values()), Waits.of(calls), len(calls) / took, shares


def _tell(report: Report, key: str, name: str, spans: Spans, stalls: Stalls) -> Waits:
    """All waits, and those beside which the machine did not stand still."""
    waits, calm = Waits.of(spans), beside(spans, stalls)
    report.line(key, f"  {name}: {waits}", **waits.figures())
    text = f"    the machine stood still {len(stalls.spans)} times, at most "
    text += f"{stalls.worst * 1e3:.0f} ms; beside that: {calm or 'no job'}"
    report.line(f"{key}:calm", text, **(calm.figures() if calm else {}))
    return waits


def _pgqueuer() -> Contender | str:
    """The peer, or why it could not be installed."""
    [peer] = environments.peers(["pgqueuer"])
    if isinstance(peer, environments.Unavailable):
        return peer.reason
    return Contender("PgQueuer", peer.command)
