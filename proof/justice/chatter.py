"""Handlers that are in a lock when their time is up: logging's own, a condition's, a queue's, a
driver's. Each runs until it is stopped."""

import ctypes
import logging
import os
import queue
import threading
import time

import psycopg

from proof.justice.jobs import QUEUE, STEP, app, mark
from proof.justice.ledger import BEAT, END, START
from tenure import Job

log = logging.getLogger("proof.chatter")
_condition = threading.Condition()
_queue: queue.Queue[int] = queue.Queue()
# Called through PyDLL, a C function keeps the interpreter's lock.
_holding = ctypes.PyDLL(None)


@app.task(name="plain_lines", queue=QUEUE, max_attempts=1)
def plain_lines(job: Job) -> None:
    """Log a line for each row of work, some hundred times per second."""
    mark(START, job)
    while True:
        log.info("job %s: a row of its work, %s", job.id, "y" * 200)
        time.sleep(0.002)


@app.task(name="long_lines", queue=QUEUE, max_attempts=1)
def long_lines(job: Job) -> None:
    """Log lines of 100 KB."""
    mark(START, job)
    line = "y" * 100_000
    while True:
        log.info("job %s: %s", job.id, line)
        time.sleep(0.002)


@app.task(name="tight_loop", queue=QUEUE, max_attempts=1)
def tight_loop(job: Job) -> None:
    """Log without a pause."""
    mark(START, job)
    while True:
        log.debug("not shown")
        log.info("job %s: %s", job.id, "y" * 50)


@app.task(name="conditions", queue=QUEUE, max_attempts=1)
def conditions(job: Job) -> None:
    """Take a condition that all share."""
    mark(START, job)
    while True:
        with _condition:
            _condition.notify()


@app.task(name="queues", queue=QUEUE, max_attempts=1)
def queues(job: Job) -> None:
    """Use a queue that all share."""
    mark(START, job)
    while True:
        _queue.put(1)
        _queue.get(timeout=1)


@app.task(name="driver_calls", queue=QUEUE, max_attempts=1)
def driver_calls(job: Job) -> None:
    """Ask the database by a connection of the handler's own, and by the job's."""
    mark(START, job)
    with psycopg.connect(os.environ["TENURE_DATABASE_URL"], autocommit=True) as connection:
        done = 0
        while True:
            connection.execute("SELECT 1")
            done += 1
            job.progress(done=done)


KINDS = ("plain_lines", "long_lines", "tight_loop", "conditions", "queues", "driver_calls")


@app.task(name="loud", queue=QUEUE, max_attempts=1)
def loud(job: Job) -> None:
    """Log more than any pipe holds."""
    mark(START, job)
    for _ in range(100):
        log.info("%s", "z" * 10_000)
    mark(END, job)


@app.task(name="hold", queue=QUEUE, timeout=None, max_attempts=20)
def hold(job: Job, seconds: float) -> None:
    """Hold the interpreter's lock: only the parent can end this in time."""
    mark(START, job)
    _holding.usleep(int(seconds * 1_000_000))
    mark(BEAT, job)
    time.sleep(STEP)
    mark(END, job)
