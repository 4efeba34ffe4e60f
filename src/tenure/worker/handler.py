"""The process of a handler that has one of its own, started by a child with the app's name and
the descriptor of their channel."""

import signal
import socket
import sys

from tenure._executors import logs
from tenure._executors.runner import Runner
from tenure.worker.loading import load
from tenure.worker.processes import be_apart, die_with_parent, keep
from tenure.worker.speaking import speak


def main() -> None:
    """Load the app and run what the child sends."""
    target, log_level, log_format, parent, fd = sys.argv[1:]
    die_with_parent(int(parent))
    keep(int(fd))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    speak(log_level, log_format)
    be_apart()
    app = load(target)
    with logs.excerpts():
        Runner(app.tasks, app.engine, app.hooks, socket.socket(fileno=int(fd))).run()
