# mypy: ignore-errors
"""A schedule leaves the task what it was; its options' names and kinds are known."""

from datetime import UTC, datetime, timedelta

from tenure import AsyncJob, Job, Tenure
from tenure.admin import By

app = Tenure(program="shop", version="2026.11.15")


@app.schedule("0 9 * * 1-5", timezone="Europe/Berlin", missed="all", missed_limit=3, overlap="skip")
@app.schedule(every=timedelta(hours=1), name="hourly", args={"name": "Ada"}, jitter=30)
@app.task
def hello(name: str = "all") -> str:
    return name


@app.schedule(at=datetime(2030, 1, 1, tzinfo=UTC), missed_within=3600)
@app.task(queue="mail")
async def greet(job: AsyncJob) -> int:
    return 1


def fits(job: Job) -> tuple[str | None, datetime | None]:
    length: int = len(hello("Ada"))
    hello.using(priority=length).enqueue(name="Ada")
    Tenure(version=7)
    return job.schedule, job.tick_at


async def fits_too(job: AsyncJob) -> int:
    return await greet(job)


def operates() -> int:
    app.admin.schedules.update("hello", By("ada"), missed="declared", missed_within=None)
    return app.admin.schedules.create("hello", hello, By("ada"), every=60, tags=["a"]).version


def wrong(job: Job) -> None:
    # E: Argument "missed" has incompatible type "Literal['declared']";
    #    expected "Literal['skip', 'latest', 'all'] | Missed | None"  [arg-type]
    app.admin.schedules.create("hello", hello, By("ada"), every=60, missed="declared")
    # E: Unexpected keyword argument "evry"; did you mean "every"?  [call-arg]
    app.admin.schedules.update("hello", By("ada"), evry=60)
    # E: Argument "priority" has incompatible type "str"; expected "int | None"  [arg-type]
    app.admin.jobs.enqueue("hello", {}, By("ada"), priority="high")
    # E: Argument 1 to "enqueue" of "TaskCall" has incompatible type "int";
    #    expected "str"  [arg-type]
    hello.enqueue(1)
    # E: Argument "missed" to "schedule" of "Tenure" has incompatible type "Literal['none']";
    #    expected "Literal['skip', 'latest', 'all'] | Missed | None"  [arg-type]
    app.schedule("@daily", missed="none")
    # E: Argument "every" to "schedule" of "Tenure" has incompatible type "str";
    #    expected "float | timedelta | None"  [arg-type]
    app.schedule(every="5m")
    # E: Unexpected keyword argument "cron" for "schedule" of "Tenure"  [call-arg]
    app.schedule(cron="@daily")
    # E: Value of type variable "T" of function cannot be "Callable[[], None]"  [type-var]
    app.schedule("@daily")(plain)
    # E: Argument "version" to "Tenure" has incompatible type "float";
    #    expected "str | int | None"  [arg-type]
    Tenure(version=1.10)
    # E: Unsupported operand types for > ("datetime" and "None")  [operator]
    _ = datetime.now(UTC) > job.tick_at


def plain() -> None: ...
