# mypy: ignore-errors
"""Arguments of enqueue and its kin are those of the function, wherever they are passed."""

from tenure import Tenure

app = Tenure()


@app.task
def hello(name: str, times: int = 1, *, loud: bool = False) -> str:
    return name * times if loud else name


@app.task(queue="web")
async def fetch(url: str) -> bytes:
    return url.encode()


def fits() -> None:
    hello.enqueue("Ada")
    hello.enqueue("Ada", 2, loud=True)
    hello.enqueue(times=2, name="Ada")
    hello.bind("Ada", loud=True)
    hello.using(priority=9).enqueue("Ada", times=2)
    hello.using(delay=60).bind(name="Ada")
    fetch.enqueue(url="https://example.org")
    fetch.using(key="k").enqueue("https://example.org")


async def fits_too() -> None:
    await hello.aenqueue("Ada", loud=True)
    await hello.using(priority=9).aenqueue(name="Ada")
    await fetch.aenqueue("https://example.org")


def wrong_type() -> None:
    # E: Argument 1 to "enqueue" of "TaskCall" has incompatible type "int";
    #    expected "str"  [arg-type]
    hello.enqueue(1)
    # E: Argument "times" to "enqueue" of "TaskCall" has incompatible type "str";
    #    expected "int"  [arg-type]
    hello.enqueue("Ada", times="2")
    # E: Argument 1 to "bind" of "TaskCall" has incompatible type "int"; expected "str"  [arg-type]
    hello.bind(1)
    # E: Argument 1 to "enqueue" of "TaskCall" has incompatible type "int";
    #    expected "str"  [arg-type]
    hello.using(priority=9).enqueue(1)
    # E: Argument 1 to "bind" of "TaskCall" has incompatible type "None"; expected "str"  [arg-type]
    hello.using(priority=9).bind(None)
    # E: Argument "url" to "enqueue" of "TaskCall" has incompatible type "bytes";
    #    expected "str"  [arg-type]
    fetch.enqueue(url=b"")


async def wrong_type_too() -> None:
    # E: Argument 1 to "aenqueue" of "TaskCall" has incompatible type "int";
    #    expected "str"  [arg-type]
    await hello.aenqueue(1)
    # E: Argument 1 to "aenqueue" of "TaskCall" has incompatible type "int";
    #    expected "str"  [arg-type]
    await hello.using(queue="slow").aenqueue(1)
    # E: Argument 1 to "aenqueue" of "TaskCall" has incompatible type "int";
    #    expected "str"  [arg-type]
    await fetch.aenqueue(1)


def missing() -> None:
    # E: Missing positional argument "name" in call to "enqueue" of "TaskCall"  [call-arg]
    hello.enqueue()
    # E: Missing positional argument "name" in call to "bind" of "TaskCall"  [call-arg]
    hello.bind(times=2)
    # E: Missing positional argument "name" in call to "enqueue" of "TaskCall"  [call-arg]
    hello.using(priority=9).enqueue(loud=True)
    # E: Missing positional argument "url" in call to "bind" of "TaskCall"  [call-arg]
    fetch.bind()


async def missing_too() -> None:
    # E: Missing positional argument "name" in call to "aenqueue" of "TaskCall"  [call-arg]
    await hello.aenqueue()
    # E: Missing positional argument "url" in call to "aenqueue" of "TaskCall"  [call-arg]
    await fetch.using(priority=9).aenqueue()


def too_many() -> None:
    # E: Too many positional arguments for "enqueue" of "TaskCall"  [call-arg]
    hello.enqueue("Ada", 2, True)
    # E: Unexpected keyword argument "nmae" for "bind" of "TaskCall"  [call-arg]
    hello.bind("Ada", nmae="Ada")
    # E: Unexpected keyword argument "priority" for "enqueue" of "TaskCall"  [call-arg]
    hello.enqueue("Ada", priority=9)
    # E: Too many arguments for "enqueue" of "TaskCall"  [call-arg]
    fetch.using(priority=9).enqueue("https://example.org", 2)


async def too_many_too() -> None:
    # E: Unexpected keyword argument "delay" for "aenqueue" of "TaskCall"  [call-arg]
    await hello.aenqueue("Ada", delay=60)
    # E: Too many arguments for "aenqueue" of "TaskCall"  [call-arg]
    await fetch.aenqueue("https://example.org", 2)
