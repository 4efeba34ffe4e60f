"""A whole worker over HTTP: it doubles numbers. TENURE_URL and TENURE_TOKEN say where and who."""

import os
import signal
import threading

from tenure.client import Client, Work, work


def double(job: Work) -> int:
    """Report on the way, and stop where that is asked for."""
    job.progress(message="doubling")
    if job.stop.is_set():
        raise RuntimeError("stopped")
    return 2 * int(job.args["number"])


def main() -> None:
    """Work until told to stop."""
    stop = threading.Event()
    for sign in (signal.SIGINT, signal.SIGTERM):
        signal.signal(sign, lambda *_: stop.set())
    with Client(os.environ["TENURE_URL"], os.environ["TENURE_TOKEN"]) as client:
        work(client, {"double": double}, queues=["numbers"], slots=4, stop=stop)


if __name__ == "__main__":
    main()
