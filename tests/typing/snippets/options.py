# mypy: ignore-errors
"""Options of the decorator and of `using`: their names and kinds are known."""

from datetime import UTC, datetime, timedelta

from tenure import Backoff, Tenure

app = Tenure("postgresql://user@host/db", imports=["shop.tasks"], pool_size=3)


@app.task(
    name="hello",
    aliases=["hi"],
    queue="mail",
    priority=7,
    max_attempts=5,
    max_losses=2,
    timeout=None,
    lease=timedelta(minutes=1),
    stop_within=1.5,
    backoff=Backoff(base=timedelta(seconds=10)),
    give_up_on=(LookupError, ValueError),
    expires_in=3600,
)
def hello(name: str) -> str:
    return name


def fits() -> None:
    hello.using(
        queue="slow",
        priority=9,
        delay=timedelta(minutes=1),
        key="k",
        key_for=60,
        max_attempts=2,
        lease=60,
        timeout=1.5,
        expires_in=3600,
        tags=["a"],
        target=500,
        connection=object(),
    ).enqueue("Ada")
    hello.using(run_at=datetime.now(UTC)).bind("Ada")


def wrong() -> None:
    # E: Unexpected keyword argument "prio" for "using" of "Registered"  [call-arg]
    hello.using(prio=9)
    # E: Argument "delay" to "using" of "Registered" has incompatible type "str";
    #    expected "float | timedelta | None"  [arg-type]
    hello.using(delay="1 minute")
    # E: Too many positional arguments for "using" of "Registered"  [call-arg]
    hello.using("slow")
    # E: Argument "run_at" to "using" of "Registered" has incompatible type "int";
    #    expected "datetime | None"  [arg-type]
    hello.using(run_at=1)
    # E: "TaskCall[[str], str]" has no attribute "using"  [attr-defined]
    hello.using(priority=9).using(queue="slow")


# E: No overload variant of "task" of "Tenure" matches argument type "str"  [call-overload]
app.task("hello")
