# mypy: ignore-errors
"""The handle, as first parameter, is the worker's to pass: enqueue does not know it."""

from typing import assert_type

from tenure import AsyncJob, Handle, Job, Tenure

app = Tenure()


@app.task
def charge(job: Job, order_id: int) -> float:
    return job.attempt + order_id


@app.task(lease=120)
async def load(job: AsyncJob, source: str, *, limit: int = 5) -> int:
    return await job.progress(cursor=source, total=limit)


@app.task
def bare(job: Job) -> None: ...


def fits() -> None:
    assert_type(charge.enqueue(1), Handle[float])
    assert_type(charge.using(priority=9).enqueue(order_id=1), Handle[float])
    assert_type(load.enqueue("a", limit=3), Handle[int])
    assert_type(bare.enqueue(), Handle[None])
    app.enqueue_many([charge.bind(1), charge.bind(order_id=2)])


async def fits_too(handle: AsyncJob) -> None:
    assert_type(await charge.aenqueue(1), Handle[float])
    assert_type(await load.using(delay=60).aenqueue("a"), Handle[int])
    assert_type(await load(handle, "a"), int)


def called(handle: Job) -> None:
    assert_type(charge(handle, 1), float)
    assert_type(charge(handle, order_id=1), float)


def wrong(handle: Job, other: AsyncJob) -> None:
    # E: Too many arguments for "enqueue" of "TaskCall"  [call-arg]
    # E: Argument 1 to "enqueue" of "TaskCall" has incompatible type "Job";
    #    expected "int"  [arg-type]
    charge.enqueue(handle, 1)
    # E: Unexpected keyword argument "job" for "enqueue" of "TaskCall"  [call-arg]
    charge.enqueue(job=handle, order_id=1)
    # E: Argument 1 to "enqueue" of "TaskCall" has incompatible type "str";
    #    expected "int"  [arg-type]
    charge.enqueue("1")
    # E: Missing positional argument "order_id" in call to "bind" of "TaskCall"  [call-arg]
    charge.bind()
    # E: Too many positional arguments for "enqueue" of "TaskCall"  [call-arg]
    # E: Argument 1 to "enqueue" of "TaskCall" has incompatible type "AsyncJob";
    #    expected "str"  [arg-type]
    # E: Argument 2 to "enqueue" of "TaskCall" has incompatible type "str";
    #    expected "int"  [arg-type]
    load.enqueue(other, "a")
    # E: Argument 1 to "bind" of "TaskCall" has incompatible type "int"; expected "str"  [arg-type]
    load.bind(1)
    # E: Missing positional argument "source" in call to "enqueue" of "TaskCall"  [call-arg]
    load.using(priority=9).enqueue(limit=1)
    # E: Too many arguments for "enqueue" of "TaskCall"  [call-arg]
    bare.enqueue(handle)


def wrongly_called(handle: Job, other: AsyncJob) -> None:
    # E: Missing positional argument "order_id" in call to "__call__" of "JobTask"  [call-arg]
    # E: Argument 1 to "__call__" of "JobTask" has incompatible type "int";
    #    expected "Job"  [arg-type]
    charge(1)
    # E: Argument 1 to "__call__" of "JobTask" has incompatible type "AsyncJob";
    #    expected "Job"  [arg-type]
    charge(other, 1)
