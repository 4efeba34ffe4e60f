"""gRPC work: unary calls by server reflection or a descriptor set.

A program that only enqueues needs neither grpcio nor protobuf. A worker needs the extra
`tenure[grpc]`.
"""

from collections.abc import Callable, Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING

from tenure._model.ids import Json
from tenure.config import TaskOptions
from tenure.errors import ConfigError
from tenure.job import AsyncJob
from tenure.kinds.grpc.target import parse_method, parse_target, read_metadata

if TYPE_CHECKING:
    from tenure.kinds.call import WorkCall

OPTIONS: TaskOptions = {"queue": "grpc", "timeout": 60}


class GrpcCall:
    """Create gRPC calls that run as jobs: `app.grpc`.

    Args:
        make: Makes work of its arguments.
    """

    def __init__(self, make: Callable[[dict[str, Json]], "WorkCall"]) -> None:
        self._make = make

    def __call__(
        self,
        target: str,
        method: str,
        message: Json = None,
        *,
        metadata: Mapping[str, str | Mapping[str, str]] | None = None,
    ) -> "WorkCall":
        """Prepare a unary gRPC call.

        The job's timeout is the call's deadline. The call carries the metadata `idempotency-key`,
        `tenure-attempt` and `tenure-fence`.

        Args:
            target: The server as HOST:PORT, without a scheme.
            method: The method as SERVICE/METHOD, with the service's full name.
            message: The request in protobuf's JSON mapping (default: an empty message).
            metadata: More metadata. A value can name a secret:
                `{"authorization": {"secret": "billing", "prefix": "Bearer "}}`.

        Returns:
            The call. Use its `enqueue`, `aenqueue`, `using` or `bind`.

        Raises:
            InvalidValue: An argument is malformed.

        Example::

            from tenure import Tenure

            app = Tenure()

            app.grpc("billing.example.com:443", "billing.Invoices/Create", {"order": 7}).enqueue()
        """
        arguments: dict[str, Json] = {"target": target, "method": method, "message": message}
        if metadata is not None:
            arguments["metadata"] = metadata
        return self._make(arguments)


def check(arguments: Mapping[str, Json]) -> None:
    """Check the arguments of a call when it is enqueued. Nothing is resolved or connected to.

    Args:
        arguments: The arguments of `handler`, by name.

    Raises:
        InvalidValue: An argument is malformed.
    """
    parse_target(arguments.get("target"))
    parse_method(arguments.get("method"))
    read_metadata(arguments.get("metadata"))


def prepare() -> None:
    """Check that this worker can make gRPC calls. Workers call it when they start.

    Raises:
        ConfigError: The extra isn't installed, or the configuration is invalid.
    """
    # Look for the modules without importing them: gRPC's threads must not exist before a fork.
    for module in ("grpc", "grpc_reflection", "google.protobuf"):
        if not _exists(module):
            raise ConfigError(
                "gRPC work needs grpcio, which is not installed; install it: "
                "pip install 'tenure[grpc]'"
            )
    from tenure.kinds.grpc import settings  # noqa: PLC0415 - only where a worker runs gRPC work

    settings.check_files(settings.load())


def _exists(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False


async def handler(
    job: AsyncJob,
    target: str,
    method: str,
    message: Json = None,
    metadata: dict[str, Json] | None = None,
) -> dict[str, Json]:
    """Make the call. This is what a worker runs.

    Args:
        job: The running job.
        target: The server as HOST:PORT.
        method: The method as SERVICE/METHOD.
        message: The request in protobuf's JSON mapping.
        metadata: More metadata. A value can name a secret.

    Returns:
        The status and the response.

    Raises:
        GiveUp: The call cannot succeed.
        Retry: The call may succeed later.
    """
    from tenure.kinds.grpc import unary  # noqa: PLC0415 - needs grpcio

    return await unary.call(job, target, method, {} if message is None else message, metadata)
