"""Handlers that are busy in code of libraries with locks, until their time is up."""

import logging
import os
import queue
import sys
import threading
import time

import psycopg

from tenure import Job, Tenure
from tenure.config import DEFAULTS

app = Tenure(defaults=DEFAULTS.scaled(0.3))
TARGET = f"{__name__}:app"
TIMEOUT = 0.3
log = logging.getLogger("spinner")
_condition = threading.Condition()
_queue: queue.Queue[int] = queue.Queue()
_own = logging.getLogger("own")
_own.propagate = False
_own.setLevel("INFO")
_own.addHandler(logging.StreamHandler(sys.stderr))


@app.task(timeout=TIMEOUT, max_attempts=1)
def log_lines(size: int, pause: float) -> None:
    """Log one line per row."""
    while True:
        log.info("x" * size)
        if pause:
            time.sleep(pause)


@app.task(timeout=TIMEOUT, max_attempts=1)
def log_by_own_handler(pause: float) -> None:
    """Log to a handler of one's own, which the root logger does not hear of."""
    while True:
        _own.info("own")
        time.sleep(pause)


@app.task(timeout=TIMEOUT, max_attempts=1)
def use_a_condition() -> None:
    """Take a condition's lock and a queue's, again and again."""
    while True:
        with _condition:
            pass
        _queue.put(1)
        _queue.get()


@app.task(timeout=TIMEOUT, max_attempts=1)
def wait_for_an_event() -> None:
    """Wait for what never comes, a little at a time."""
    event = threading.Event()
    while not event.wait(0.05):
        pass


@app.task(timeout=TIMEOUT, max_attempts=1)
def report(job: Job) -> None:
    """Report progress all the time."""
    done = 0
    while True:
        done += 1
        job.progress(done=done)


@app.task(timeout=TIMEOUT, max_attempts=1)
def query() -> None:
    """Ask a database of one's own, again and again."""
    with psycopg.connect(os.environ["TENURE_DATABASE_URL"], autocommit=True) as connection:
        while True:
            connection.execute("SELECT pg_sleep(0.01)")


@app.task(timeout=None, max_attempts=1)
def innocent(job: Job, rounds: int) -> int:
    """Use the same locks, as neighbours do."""
    for n in range(rounds):
        log.info("innocent")
        _own.info("innocent")
        with _condition:
            _queue.put(1)
            _queue.get()
        job.progress(done=n)
        time.sleep(0.05)
    return rounds
