"""What needs attention, rule by rule: figures in, sentences out."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from tenure._model.diagnostics import Level
from tenure._model.ids import JobId, WorkerId
from tenure._model.lease import StuckLease
from tenure._model.overview import (
    AlertCode,
    DayCounts,
    HorizonHolder,
    HorizonHolderKind,
    HourlyFailures,
    LateSchedule,
    QueueSummary,
    TargetKind,
)
from tenure._model.queue import EVERY_QUEUE, QueueRow
from tenure._model.schedule import TickOutcome, TickReason
from tenure._model.stats import Count, Depth, LateWork, TickCount
from tenure._model.worker import WorkerRow, WorkerState
from tenure._rules.alerts import (
    HELD_FOR,
    HELD_TRANSACTIONS,
    MOST,
    AlertInputs,
    dead_rows,
    find_alerts,
    matters,
    words,
)
from tenure._rules.formatting import compact, counted, interval, measured, span
from tenure._rules.liveness import unknown_to_all

NOW = datetime(2030, 1, 1, 12, tzinfo=UTC)
NONE = Count(0)
MINUTE = timedelta(minutes=1)
FINE = AlertInputs(
    now=NOW,
    pulse=DayCounts(NOW, NONE, NONE, NONE, NONE),
    queues=(),
    every_queue=None,
    workers=(),
    lateness=LateWork(timedelta(0), timedelta(0), NONE, timedelta(0), NONE, 0, ()),
    late_schedules=(),
    overdue=(),
    holders=(),
)
PAUSED = QueueRow("mail", paused_at=NOW - MINUTE, paused_by="ana", paused_reason="failover")


def queue(
    name: str = "mail",
    *,
    due: int = 0,
    oldest: timedelta | None = None,
    workers: int = 1,
    row: QueueRow | None = None,
    last_hour: HourlyFailures = HourlyFailures(),  # noqa: B008 - frozen
    hour_before: HourlyFailures = HourlyFailures(),  # noqa: B008
) -> QueueSummary:
    depth = Depth(name, Count(due), NONE, NONE, NONE, NONE, oldest)
    return QueueSummary(depth, row, row is not None, workers, last_hour, hour_before)


def given(**figures: object) -> list[tuple[AlertCode, str, str]]:
    shown, _ = find_alerts(replace(FINE, **figures))  # type: ignore[arg-type]
    return [(each.code, each.sentence, each.command) for each in shown]


def test_all_clear_prints_one_sentence() -> None:
    """Shows R35."""
    assert find_alerts(FINE) == ([], 0)
    assert words(FINE, found=0) == ("No workers are live. Start one: tenure worker module:app")
    busy = replace(FINE, queues=[queue(due=3)], workers=[worker()])
    assert words(busy, found=0) == (
        "All is well: 1 worker is live, no queue is behind, no lease is overdue."
    )
    assert words(FINE, found=1) == "1 thing needs attention."
    assert words(FINE, found=2) == "2 things need attention."


def test_a_queue_with_due_jobs_and_no_worker() -> None:
    assert given(queues=[queue(due=2, workers=0), queue("empty", workers=0)]) == [
        (
            AlertCode.NOT_SERVED,
            "Queue mail has 2 due jobs and no live worker.",
            "tenure worker module:app -q mail",
        )
    ]


def test_a_task_that_no_live_worker_knows() -> None:
    lost = {"unknown_tasks": ["shop.mail", "shop.pack"]}
    one, other = (
        replace(worker(), meta=lost),
        replace(worker(), meta={"unknown_tasks": ["shop.mail"]}),
    )
    assert unknown_to_all([one, worker()]) == []
    assert unknown_to_all([one, other]) == ["shop.mail"]
    assert given(workers=[one, other]) == []
    assert given(unknown_tasks=["shop.mail"]) == [
        (
            AlertCode.TASK_UNKNOWN,
            "Jobs of task shop.mail wait: no live worker knows it.",
            "tenure doctor",
        )
    ]


def test_a_due_job_that_waits_past_the_target() -> None:
    assert given(queues=[queue(due=2, oldest=5 * MINUTE)]) == []
    [(code, sentence, command)] = given(queues=[queue(due=2, oldest=7 * MINUTE)])
    assert code is AlertCode.LATE
    assert sentence == ("Queue mail is behind: its oldest job has waited 7 min (threshold: 5 min).")
    assert command == "tenure queue show mail"


@pytest.mark.parametrize(
    ("last", "before", "is_shown"),
    [
        (HourlyFailures(100, 40), HourlyFailures(100, 4), True),
        (HourlyFailures(100, 40), HourlyFailures(100, 30), False),
        (HourlyFailures(100, 8), HourlyFailures(100, 1), False),
        (HourlyFailures(19, 19), HourlyFailures(100, 1), False),
        (HourlyFailures(20, 20), HourlyFailures(), True),
    ],
)
def test_a_failure_rate_that_jumped(
    last: HourlyFailures, before: HourlyFailures, *, is_shown: bool
) -> None:
    found = given(queues=[queue(last_hour=last, hour_before=before)])
    assert [code for code, _, _ in found] == [AlertCode.FAILING] * is_shown


def test_failure_rate_is_shown_next_to_the_previous_one() -> None:
    [(_, sentence, _)] = given(
        queues=[queue(last_hour=HourlyFailures(100, 40), hour_before=HourlyFailures(50, 2))]
    )
    assert sentence == (
        "Queue mail is failing: 40% of attempts in the last hour (40 of 100; the hour before: 4%)."
    )


def test_unfired_schedule_and_missed_ticks() -> None:
    """Shows R27."""
    missed = [
        TickCount(TickOutcome.SKIPPED, TickReason.MISSED, 3),
        TickCount(TickOutcome.FIRED, TickReason.LATE, 9),
    ]
    assert given(late_schedules=[LateSchedule("nightly", 12 * MINUTE)]) == [
        (
            AlertCode.SCHEDULE_OVERDUE,
            "Schedule nightly is 12 min overdue: no worker is firing schedules.",
            "tenure scheduler module:app",
        )
    ]
    assert given(lateness=replace(FINE.lateness, ticks=missed)) == [
        (
            AlertCode.TICKS_MISSED,
            "Missed 3 scheduled runs in the last hour: no worker fired them in time.",
            "tenure schedule list",
        )
    ]


@pytest.mark.parametrize(
    ("pid", "ends", "command"),
    [
        (None, ", and no worker has taken the job over (1 more).", "tenure worker"),
        (
            7,
            ", and no worker can take it over: pid 7 (psql) has its row locked (1 more).",
            "SELECT pg_terminate_backend(7)",
        ),
    ],
)
def test_leases_that_are_over_and_not_rescued(pid: int | None, ends: str, command: str) -> None:
    """Shows R6, R35."""
    [(code, sentence, todo)] = given(
        overdue=[StuckLease(JobId(5), pid, "psql", None)],
        lateness=replace(FINE.lateness, lease=2 * MINUTE),
        pulse=replace(FINE.pulse, expired=Count(2)),
    )
    assert code is AlertCode.LEASE_OVER
    assert sentence == f"The lease of job 5 expired 2 min ago{ends}"
    assert todo.startswith(command)


def test_dead_letters_that_grew() -> None:
    [(code, sentence, _)] = given(pulse=replace(FINE.pulse, failed_hour=Count(10_000, more=True)))
    assert code is AlertCode.DEAD_LETTERS
    assert sentence == "10,000+ jobs failed for good in the last hour."


def test_a_paused_queue_with_jobs_waiting_is_neither_late_nor_unserved() -> None:
    assert given(queues=[queue(due=4, oldest=60 * MINUTE, workers=0, row=PAUSED)]) == [
        (
            AlertCode.QUEUE_PAUSED,
            "Queue mail is paused by ana (failover); 4 jobs wait.",
            "tenure queue resume mail",
        )
    ]
    assert given(queues=[queue(row=PAUSED)]) == []


def test_all_queues_paused_are_one_sentence() -> None:
    every = replace(PAUSED, name=EVERY_QUEUE, paused_reason=None)
    queues = [queue(due=1, oldest=60 * MINUTE), queue("bulk", due=2, workers=0)]
    assert given(every_queue=every, queues=queues) == [
        (
            AlertCode.ALL_PAUSED,
            "All queues are paused by ana; 3 jobs wait.",
            "tenure queue resume '*'",
        )
    ]
    assert len(given(every_queue=replace(every, paused_until=NOW), queues=queues)) == 2


@pytest.mark.parametrize(
    ("holder", "who", "command"),
    [
        (
            HorizonHolder(
                HorizonHolderKind.SESSION, "42", "psql", "idle in transaction", 9, 40 * MINUTE
            ),
            "pid 42 (psql, idle in transaction) has held them for 40 min",
            "SELECT pg_terminate_backend(42)",
        ),
        (
            HorizonHolder(HorizonHolderKind.PREPARED, "it's", "ana", "prepared", 9, 60 * MINUTE),
            "the prepared transaction it's has held them for 1 h",
            "ROLLBACK PREPARED 'it''s'",
        ),
        (
            HorizonHolder(HorizonHolderKind.SLOT, "cdc", None, "inactive", 2_000_000, None),
            "the replication slot cdc (inactive) has held them for 2,000,000 transactions",
            "SELECT pg_drop_replication_slot('cdc')",
        ),
        (
            HorizonHolder(HorizonHolderKind.STANDBY, "43", "replica", None, 2_000_000, None),
            "the standby replica has held them for 2,000,000 transactions (hot_standby_feedback)",
            "end the long query on that standby, or turn off its hot_standby_feedback",
        ),
    ],
)
def test_who_holds_the_horizon(holder: HorizonHolder, who: str, command: str) -> None:
    assert matters(holder)
    assert dead_rows(holder).who == who
    assert given(holders=[holder]) == [
        (AlertCode.HORIZON, f"Vacuum cannot remove dead rows: {who}.", command)
    ]


def test_a_short_transaction_does_not_matter() -> None:
    holder = HorizonHolder(
        HorizonHolderKind.SESSION, "42", "psql", "active", 10**9, HELD_FOR - MINUTE
    )
    assert not matters(holder)
    assert not matters(replace(holder, age=None, lag=HELD_TRANSACTIONS - 1))


def test_at_most_eight_sentences_three_of_a_kind_worst_first() -> None:
    """Shows R35."""
    figures = replace(
        FINE,
        queues=[queue(f"q{n}", due=1, workers=0, oldest=n * MINUTE) for n in range(5)]
        + [queue(f"late{n}", due=1, oldest=(10 + n) * MINUTE) for n in range(5)],
        late_schedules=[LateSchedule("nightly", MINUTE)],
        overdue=[StuckLease(JobId(5), None, None, None)],
        pulse=replace(FINE.pulse, failed_hour=Count(1), expired=Count(1)),
    )
    shown, more = find_alerts(figures)
    assert [each.target.name for each in shown] == [
        *("5", "q4", "q3", "q2", "nightly", "late4", "late3", "late2")
    ]
    assert (len(shown), more) == (MOST, 5)
    assert {each.level for each in shown} == {Level.PROBLEM}
    assert shown[0].target.kind is TargetKind.JOB


@pytest.mark.parametrize(
    ("length", "words"),
    [
        (timedelta(0), "0 s"),
        (timedelta(seconds=59), "59 s"),
        (timedelta(minutes=2, seconds=5), "2 min 5 s"),
        (timedelta(minutes=40, seconds=5), "40 min"),
        (timedelta(hours=2, minutes=5), "2 h 5 min"),
        (timedelta(days=12), "12 d"),
    ],
)
def test_lengths_in_words(length: timedelta, words: str) -> None:
    assert span(length) == words


@pytest.mark.parametrize(
    ("length", "shown", "option", "every"),
    [
        (timedelta(seconds=0.004), "4 ms", "0.004s", "0.004 seconds"),
        (timedelta(seconds=1), "1.0 s", "1s", "second"),
        (timedelta(seconds=2.25), "2.2 s", "2.25s", "2.25 seconds"),
        (timedelta(minutes=90), "1 h 30 min", "1h30m", "1 hour 30 minutes"),
        (timedelta(days=1, minutes=5), "1 d", "1d5m", "1 day 5 minutes"),
        (timedelta(days=1), "1 d", "1d", "day"),
    ],
)
def test_a_length_as_measured_as_an_option_and_as_an_interval(
    length: timedelta, shown: str, option: str, every: str
) -> None:
    assert (measured(length), compact(length), interval(length)) == (shown, option, every)


def test_counts_in_words() -> None:
    assert counted(1, "job", "jobs") == "1 job"
    assert counted(Count(10_000, more=True), "job", "jobs") == "10,000+ jobs"


def worker() -> WorkerRow:
    return WorkerRow(
        id=WorkerId(UUID(int=1)),
        name="w",
        host="h",
        pid=1,
        version="1",
        language="python",
        queues=["mail"],
        slots=1,
        running=0,
        state=WorkerState.ACTIVE,
        drain_requested=False,
        started_at=NOW,
        last_heartbeat_at=NOW,
        heartbeat_age=timedelta(0),
        meta=None,
    )
