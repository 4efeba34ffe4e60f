"""Check workers, queues, tasks, leases and schedules."""

from collections.abc import Sequence

from tenure._model.diagnostics import FindingCode, LockedJob
from tenure._model.lease import StuckLease
from tenure._model.notice import NOTICE_QUEUE, NoticeRule
from tenure._model.overview import LateSchedule
from tenure._model.queue import EVERY_QUEUE
from tenure._model.worker import WorkerRow, WorkerState
from tenure._rules.formatting import counted, span
from tenure._rules.liveness import FRESH, live
from tenure.admin.doctor.findings import Findings, fine, in_sql, problem, run, warning

_NAMED = 3


def workers(known: Sequence[WorkerRow]) -> Findings:
    """Check that workers are live and run the same release."""
    stale = [w for w in known if w.state is not WorkerState.OFFLINE and w.heartbeat_age > FRESH]
    for worker in stale[:_NAMED]:
        more = f" (and {len(stale) - _NAMED} more workers)" if len(stale) > _NAMED else ""
        yield warning(
            "workers",
            FindingCode.WORKER_STALE,
            f"worker {worker.name} on {worker.host} sent no heartbeat for "
            f"{worker.heartbeat_age.total_seconds():.0f} s{more}",
            "it was killed or lost its connection. Other workers take over when its leases expire",
            "check its machine. Tenure deletes its row after a week",
        )
    there = live(known)
    yield from _versions(there)
    if there:
        are = counted(len(there), "worker is live", "workers are live")
        slots = counted(sum(worker.slots for worker in there), "slot", "slots")
        yield fine("workers", f"{are}, with {slots}")
    else:
        yield warning(
            "workers",
            FindingCode.NO_WORKER,
            "no worker is live",
            "jobs can be enqueued, but do not run",
            run("tenure worker module:app"),
        )


def _versions(there: Sequence[WorkerRow]) -> Findings:
    """Report workers in one language that run different releases, except stopping ones."""
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
                f"live workers run several releases: {newest.version}, but also {names}{more}",
                "that is normal during a rolling deploy. Afterwards, a worker was left behind",
                run(" && ".join(f"tenure worker drain {w.id}" for w in others[:_NAMED])),
            )


def queues(
    known: Sequence[WorkerRow], waiting: Sequence[str], unknown_tasks: Sequence[str]
) -> Findings:
    """Report queues and tasks whose jobs are waiting for a worker that doesn't exist."""
    there = live(known)
    served = {queue for worker in there for queue in worker.queues}
    alone = [] if EVERY_QUEUE in served else sorted(set(waiting) - served)
    for queue in alone:
        yield problem(
            "queues",
            FindingCode.QUEUE_NOT_SERVED,
            f"queue {queue} has jobs, but no live worker serves it",
            "its jobs do not run",
            run(f"tenure worker module:app -q {queue}"),
        )
    for task in unknown_tasks:
        yield problem(
            "tasks",
            FindingCode.TASK_UNKNOWN,
            f"jobs of task {task} wait, but no live worker knows it",
            "every live worker got such a job and gave it back",
            "deploy the code that has the task, or add its module to Tenure(imports=[…])",
        )


def notices(known: Sequence[WorkerRow], rules: Sequence[NoticeRule]) -> Findings:
    """Report rules whose notices no worker sends."""
    served = {queue for worker in live(known) for queue in worker.queues}
    if rules and not served & {NOTICE_QUEUE, EVERY_QUEUE}:
        exist = counted(len(rules), "notice rule exists", "notice rules exist")
        yield warning(
            "notices",
            FindingCode.NOTICES_NOT_SENT,
            f"{exist}, but no live worker serves queue {NOTICE_QUEUE}",
            "notices wait, and their receivers learn nothing about failures",
            run("tenure worker module:app --kinds http"),
        )


def locked(jobs: Sequence[LockedJob]) -> Findings:
    """Report due jobs whose rows another transaction has locked."""
    for each in jobs:
        since = "" if each.since is None else f" since {each.since:%Y-%m-%d %H:%M:%S}Z"
        yield problem(
            "queues",
            FindingCode.JOB_LOCKED,
            f"job {each.job_id} of queue {each.queue} is due, but pid {each.pid} "
            f"({each.application or 'unknown'}) has locked its row{since}",
            "workers skip it until that transaction ends",
            in_sql(f"SELECT pg_terminate_backend({each.pid})"),
        )


def leases(overdue: Sequence[StuckLease]) -> Findings:
    """Report leases that expired long ago and whose jobs no worker has picked up."""
    for each in overdue:
        what = f"the lease of job {each.job_id} has expired, and no worker has taken the job over"
        why = "the job does not run"
        if each.pid is None:
            todo = run("tenure worker module:app")
        else:
            what += f": pid {each.pid} ({each.application or 'unknown'}) has locked its row"
            todo = in_sql(f"SELECT pg_terminate_backend({each.pid})")
        yield problem("leases", FindingCode.LEASE_OVER, what, why, todo)
    if not overdue:
        yield fine("leases", "no expired lease is left over")


def schedules(late: Sequence[LateSchedule], *, any_there: bool) -> Findings:
    """Report schedules that no worker is running."""
    for each in late:
        yield problem(
            "schedules",
            FindingCode.SCHEDULE_OVERDUE,
            f"schedule {each.name} is {span(each.late)} overdue: no worker is firing schedules",
            "its jobs are not enqueued. Its policy decides what happens to missed runs",
            run("tenure scheduler module:app"),
        )
    if any_there and not late:
        yield fine("schedules", "no schedule is overdue")
