"""One piece of work of a built-in kind, ready to enqueue."""

from typing import Unpack

from tenure import kinds
from tenure._model.ids import Json
from tenure.handle import Handle
from tenure.task import BoundCall, CallOptions, Enqueuer, TaskCall, check_names


class WorkCall:
    """An HTTP request, shell command or gRPC call that you can enqueue.

    `app.http`, `app.shell` and `app.grpc` create it.
    """

    def __init__(
        self,
        app: Enqueuer,
        task: str,
        arguments: dict[str, Json],
        options: CallOptions | None = None,
    ) -> None:
        self._app = app
        self._task = task
        self._options: CallOptions = options or {}
        self._arguments = kinds.arguments(task, arguments)
        self._call: TaskCall[..., dict[str, Json]] = TaskCall(
            app, kinds.definition(task), self._options
        )

    def __repr__(self) -> str:
        return f"<{self._task}>"

    @property
    def task(self) -> str:
        """The name of its task."""
        return self._task

    @property
    def arguments(self) -> dict[str, Json]:
        """Its arguments, as stored with the job."""
        return dict(self._arguments)

    def using(self, **options: Unpack[CallOptions]) -> "WorkCall":
        """Return this work with options for its job. They are the options of `task.using`.

        Args:
            queue: Another queue (default: the kind's name, such as `"http"`).
            priority: 0 to 9, where 9 is the most urgent.
            delay: Wait this long before the first attempt.
            run_at: The earliest start, as an aware datetime. Cannot be combined with `delay`.
            key: The deduplication key.
            key_for: How long to keep the key after the job ends (default: 0).
            max_attempts: How many times to try the job.
            lease: How long a claim lasts between renewals.
            timeout: How long an attempt may run. None means no limit.
            expires_in: Cancel the job if it hasn't started this long after being enqueued.
            tags: Short strings stored with the job.
            target: Complete the job once it has reported this many distinct items.
            connection: Your open connection or session. The job exists once you commit.

        Returns:
            The work with these options.
        """
        check_names(options, CallOptions.__optional_keys__)
        return WorkCall(self._app, self._task, self._arguments, {**self._options, **options})

    def enqueue(self) -> Handle[dict[str, Json]]:
        """Enqueue one job. It is durable on return, or once your own transaction commits.

        Returns:
            A handle to the new job, or to the job that already holds the key.

        Raises:
            InvalidValue: An option is out of range.
            PayloadError: The arguments are too large.
            StoreError: The database did not accept the job.
        """
        return self._call.enqueue(**self._arguments)

    async def aenqueue(self) -> Handle[dict[str, Json]]:
        """Async version of `enqueue`.

        Returns:
            A handle to the job.
        """
        return await self._call.aenqueue(**self._arguments)

    def bind(self) -> BoundCall[dict[str, Json]]:
        """Return the call for `app.enqueue_many` or `job.enqueue`, without enqueueing it.

        Returns:
            The call.
        """
        return self._call.bind(**self._arguments)
