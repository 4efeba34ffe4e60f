"""What is to be done, and who does it: workers, queues, tasks, leases, schedules."""

from collections.abc import Sequence

from tenure._model.diagnostics import FindingCode, LockedJob
from tenure._model.lease import StuckLease
from tenure._model.overview import LateSchedule
from tenure._model.queue import EVERY_QUEUE
from tenure._model.worker import WorkerRow, WorkerState
from tenure._rules.formatting import counted, span
from tenure._rules.liveness import FRESH, live, unknown_to_all
from tenure.admin.doctor.findings import Findings, fine, in_sql, problem, run, warning

_NAMED = 3


def workers(known: Sequence[WorkerRow]) -> Findings:
    """Who is live, stale, or of another release than the rest."""
    stale = [w for w in known if w.state is not WorkerState.OFFLINE and w.heartbeat_age > FRESH]
    for worker in stale[:_NAMED]:
        more = f", as {len(stale) - _NAMED} others" if len(stale) > _NAMED else ""
        yield warning(
            "workers",
            FindingCode.WORKER_STALE,
            f"worker {worker.name} on {worker.host} has not beaten for "
            f"{worker.heartbeat_age.total_seconds():.0f} s{more}",
            "it was killed, or is cut off; others take over what it held when its leases end",
            "look at its machine; its row goes by itself after a week",
        )
    there = live(known)
    yield from _versions(there)
    if there:
        are = counted(len(there), "worker is live", "workers are live")
        yield fine("workers", f"{are}, with {sum(worker.slots for worker in there)} slots")
    else:
        yield warning(
            "workers",
            FindingCode.NO_WORKER,
            "no worker is live",
            "jobs can be enqueued, and wait",
            run("tenure worker module:app"),
        )


def _versions(there: Sequence[WorkerRow]) -> Findings:
    """Workers that stay, of one language and of several releases."""
    for language in sorted({worker.language for worker in there}):
        staying = [
            worker
            for worker in there
            if worker.language == language
            and worker.state is WorkerState.ACTIVE
            and not worker.drain_requested
        ]
        newest = max(staying, key=lambda worker: worker.started_at, default=None)
        others = [w for w in staying if newest is not None and w.version != newest.version]
        if newest is not None and others:
            names = ", ".join(f"{w.name} on {w.host} ({w.version})" for w in others[:_NAMED])
            more = f" and {len(others) - _NAMED} more" if len(others) > _NAMED else ""
            yield warning(
                "workers",
                FindingCode.VERSIONS_MIXED,
                f"beside {newest.version}, which started last, there are: {names}{more}",
                "while a release is rolled out that is as it should be; later, one was left behind",
                run(" && ".join(f"tenure worker drain {w.id}" for w in others[:_NAMED])),
            )


def queues(known: Sequence[WorkerRow], waiting: Sequence[str]) -> Findings:
    """What waits for a worker that is not there."""
    there = live(known)
    served = {queue for worker in there for queue in worker.queues}
    alone = [] if EVERY_QUEUE in served else sorted(set(waiting) - served)
    for queue in alone:
        yield problem(
            "queues",
            FindingCode.QUEUE_NOT_SERVED,
            f"queue {queue} has jobs, and no live worker serves it",
            "its jobs wait",
            run(f"tenure worker module:app -q {queue}"),
        )
    for task in unknown_to_all(known):
        yield problem(
            "tasks",
            FindingCode.TASK_UNKNOWN,
            f"no live worker knows task {task}",
            "its jobs wait; each worker that met one has left it to others",
            "deploy the code that has it, or name its module in Tenure(imports=[…])",
        )


def locked(jobs: Sequence[LockedJob]) -> Findings:
    """What is due, and locked by a transaction that has nothing to do with running it."""
    for each in jobs:
        since = "" if each.since is None else f" since {each.since:%Y-%m-%d %H:%M:%S}Z"
        yield problem(
            "queues",
            FindingCode.JOB_LOCKED,
            f"job {each.job_id} of queue {each.queue} is due, but pid {each.pid} "
            f"({each.application or 'unknown'}) has its row locked{since}",
            "workers pass it over until that transaction ends",
            in_sql(f"SELECT pg_terminate_backend({each.pid})"),
        )


def leases(overdue: Sequence[StuckLease]) -> Findings:
    """Leases that are long over, and that nobody has rescued."""
    for each in overdue:
        what = f"the lease of job {each.job_id} is over, and nobody has rescued it"
        why = "the job is neither run nor given to another worker"
        if each.pid is None:
            todo = run("tenure worker module:app")
        else:
            what += f": pid {each.pid} ({each.application or 'unknown'}) has its row locked"
            todo = in_sql(f"SELECT pg_terminate_backend({each.pid})")
        yield problem("leases", FindingCode.LEASE_OVER, what, why, todo)
    if not overdue:
        yield fine("leases", "every lease that is over is rescued")


def schedules(late: Sequence[LateSchedule], *, any_there: bool) -> Findings:
    """What is due, and has been for longer than anybody who fires would let it be."""
    for each in late:
        yield problem(
            "schedules",
            FindingCode.SCHEDULE_OVERDUE,
            f"schedule {each.name} is due since {span(each.late)}, and nobody fires it",
            "its jobs are not made; ticks that are missed come to what its policy says",
            run("tenure scheduler module:app"),
        )
    if any_there and not late:
        yield fine("schedules", "no schedule is overdue")
