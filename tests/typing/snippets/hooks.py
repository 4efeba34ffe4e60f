# mypy: ignore-errors
"""Middleware and listeners: what they are passed is known, and so are the names."""

from collections.abc import AsyncIterator, Iterator

from tenure import AsyncJob, Draft, Job, JobEvent, Tenure, WorkerEvent

app = Tenure("postgresql://user@host/db")


@app.middleware("enqueue")
def trace(draft: Draft) -> Iterator[None]:
    draft.meta["trace"] = "t"
    yield
    job_id: int | None = draft.id
    created: bool | None = draft.created
    assert (job_id is None) == (created is None)


@app.middleware("run")
def both(job: Job | AsyncJob) -> Iterator[None]:
    assert job.meta["trace"]
    yield


@app.middleware("run")
async def awaiting(job: AsyncJob) -> AsyncIterator[None]:
    await job.progress(message="begun")
    yield


@app.middleware("run", only="async")
async def only_async(job: AsyncJob) -> AsyncIterator[None]:
    yield


@app.middleware("run", only="async")
def plain_around_async(job: AsyncJob) -> Iterator[None]:
    yield


@app.middleware("run", only="def")
def only_def(job: Job) -> Iterator[None]:
    job.progress(message="begun")
    yield


@app.on("failed", "timed_out")
def dead_letter(event: JobEvent) -> None:
    job_id: int = event.job_id
    error: str = event.error.message if event.error else event.reason or ""
    assert error.format(job_id)


@app.on("worker_stopping")
async def stopping(event: WorkerEvent) -> None:
    assert event.worker.upper()


async def still_functions(event: JobEvent, worker: WorkerEvent) -> None:
    dead_letter(event)
    await stopping(worker)
    # E: Argument 1 to "dead_letter" has incompatible type "WorkerEvent";
    #    expected "JobEvent"  [arg-type]
    dead_letter(worker)


# E: No overload variant of "on" of "Tenure" matches argument type "str"  [call-overload]
app.on("fialed")
# E: No overload variant of "on" of "Tenure" matches argument types "str", "str"  [call-overload]
app.on("failed", "worker_stopping")
# E: No overload variant of "middleware" of "Tenure" matches argument type "str"  [call-overload]
app.middleware("enqueu")


# E: Value of type variable "W" of function cannot be "Callable[[JobEvent], None]"  [type-var]
@app.on("worker_started")
def wrong_event(event: JobEvent) -> None: ...


# E: Value of type variable "E" of function cannot be "Callable[[Draft], None]"  [type-var]
@app.middleware("enqueue")
def no_yield(draft: Draft) -> None: ...


# E: Value of type variable "M" of function cannot be "Callable[[Job], Iterator[None]]"  [type-var]
@app.middleware("run")
def half(job: Job) -> Iterator[None]:
    yield
