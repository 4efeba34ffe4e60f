"""A small program with tasks of every kind, for the kit to run."""

import threading
from contextvars import ContextVar
from dataclasses import dataclass

from tenure import AsyncJob, Backoff, Cancel, GiveUp, Job, Retry, Snooze, Tenure, current_job

app = Tenure()
done: list[object] = []
whose: ContextVar[str] = ContextVar("whose", default="nobody's")


class Declined(Exception):
    """A payment that was refused."""


@dataclass(frozen=True)
class Letter:
    to: str
    pages: int = 1


@app.task(queue="mail")
def post(letter: Letter) -> str:
    done.append(letter)
    return f"to {letter.to}"


@app.task
async def apost(to: str) -> str:
    done.append(to)
    return to


@app.task
def where() -> dict[str, object]:
    return {"thread": threading.get_ident(), "whose": whose.get(), "job": current_job().id}


@app.task(max_attempts=2, backoff=Backoff(base=60, jitter=0))
def charge(order: int) -> None:
    done.append(order)
    raise Declined(f"order {order}")


@app.task
def says(what: str) -> None:
    raise {
        "retry": Retry("later", after=60),
        "give up": GiveUp("never"),
        "cancel": Cancel("not wanted"),
        "snooze": Snooze(60),
    }[what]


@app.task
def unstorable() -> object:
    return object()


@app.task
def chain(rest: int) -> None:
    done.append(rest)
    if rest:
        chain.enqueue(rest - 1)


@app.task
def remind(rest: int) -> None:
    done.append(rest)
    if rest:
        remind.using(delay=3600).enqueue(rest - 1)


@app.task
def follow(job: Job, how: str) -> None:
    call = post.bind(Letter("follower"))
    if how == "transaction":
        with job.transaction() as connection:
            job.enqueue(call)
            connection.execute("SELECT 1")
            done.append("in the transaction")
        done.append("after the transaction")
    elif how == "complete":
        job.enqueue(call)
    elif how == "target":
        job.enqueue(call)
        job.progress(items={"one": 1})
    done.append("returned")


@app.task
def ledger(job: Job, amount: int) -> None:
    with job.transaction() as connection:
        connection.execute("INSERT INTO ledger VALUES (%s)", [amount])


@app.task
async def aledger(job: AsyncJob, amount: int) -> int:
    await job.progress(done=1, total=2, message="begun")
    async with job.transaction() as connection:
        await connection.execute("INSERT INTO ledger VALUES (%s)", [amount])
    return amount


@app.task
def broken(job: Job) -> None:
    with job.transaction() as connection:
        chain.using(connection=connection).enqueue(0)
        raise Declined("in the transaction")


@app.task
def locked(job: Job) -> None:
    done.append(job.id)


@app.task
def crawl(job: Job, pages: int) -> int:
    for page in range(job.cursor or 0, pages):
        job.progress(cursor=page + 1, done=page + 1, total=pages)
    return pages
