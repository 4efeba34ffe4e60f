"""Tenure over HTTP, for programs that do not reach the database: enqueue, look, and work.

A `Client` speaks the API with one access token. `work` makes a worker of it: it acquires, keeps the
leases renewed while handlers run, and settles; what it cannot settle is sent again until the lease
is over. The fences are the server's: a result that comes too late is refused there.
"""

from tenure.client.acquired_job import Work
from tenure.client.http import Client, Problem
from tenure.client.worker import Handler, work

__all__ = ["Client", "Handler", "Problem", "Work", "work"]
