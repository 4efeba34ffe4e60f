"""Use Tenure over HTTP, for programs that can't connect to the database.

A `Client` calls the API with one access token. `work` uses a client to run a worker, which acquires
jobs, renews their leases while handlers run, and reports results. It retries a report until the
server accepts it or the lease ends. The server uses the fencing token to reject late results.
"""

from tenure.client.acquired_job import Work
from tenure.client.http import Client, Problem
from tenure.client.worker import Handler, work

__all__ = ["Client", "Handler", "Problem", "Work", "work"]
