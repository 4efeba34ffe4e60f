"""One unary call: from a job's arguments to its result.

Only the handler imports this module, because it needs grpcio.
"""

import asyncio
import contextlib
from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any

import grpc

from tenure._model.ids import Json
from tenure._model.outcome import GiveUp, Retry
from tenure._rules import payload
from tenure.config import DEFAULTS
from tenure.errors import ConfigError, InvalidValue, PayloadError
from tenure.job import AsyncJob
from tenure.kinds.grpc import schema
from tenure.kinds.grpc import settings as configuration
from tenure.kinds.grpc.channels import channels
from tenure.kinds.grpc.schema import SCHEMAS, Metadata, Mismatch, ServiceSchema, Unary
from tenure.kinds.grpc.settings import GrpcSettings
from tenure.kinds.grpc.target import (
    GrpcTarget,
    MetadataValue,
    Method,
    parse_method,
    parse_target,
    read_metadata,
)
from tenure.kinds.http.response import RequestFailed
from tenure.kinds.settings import secret

_RETRYABLE = {
    grpc.StatusCode.ABORTED,
    grpc.StatusCode.DEADLINE_EXCEEDED,
    grpc.StatusCode.RESOURCE_EXHAUSTED,
    grpc.StatusCode.UNAVAILABLE,
}
# How C++, Go and Java say that a message is too large. A repeated call would be so too.
_TOO_LARGE = ("larger than max", "exceeds maximum size")
_LONGEST_DETAILS = 500
# JSON is at least a quarter of the size of the bytes, so a larger response never fits in a result.
_LARGEST_RESPONSE = 4 * payload.MAX_RESULT
_HIDDEN = "[secret]"


async def call(
    job: AsyncJob, target: str, method: str, message: Json, metadata: Mapping[str, Json] | None
) -> dict[str, Json]:
    """Make the call and return its result. The arguments are those of the handler.

    Raises:
        GiveUp: The call cannot succeed.
        Retry: The call may succeed later.
    """
    try:
        server, unary, values = parse_target(target), parse_method(method), read_metadata(metadata)
    except InvalidValue as error:
        raise GiveUp(str(error)) from None
    return await _Attempt(job, server, unary, configuration.load()).run(message, values)


class _Attempt:
    def __init__(
        self, job: AsyncJob, target: GrpcTarget, method: Method, settings: GrpcSettings
    ) -> None:
        self._job = job
        self._target = target
        self._method = method
        self._settings = settings
        self._secrets: list[str] = []

    async def run(self, message: Json, metadata: Mapping[str, MetadataValue]) -> dict[str, Json]:
        pairs = [(key, self._filled(value)) for key, value in metadata.items()]
        with self._judged():
            async with channels().use(self._target, self._settings) as channel:
                unary, request = await self._prepare(channel, message, pairs)
                response = await self._send(channel, request, pairs)
        return await self._result(unary, response)

    def _filled(self, value: MetadataValue) -> str:
        if value.secret is None:
            return value.text
        # A job could name a server of its author, so a secret goes only where the worker says.
        if self._target.authority not in self._settings.secrets.get(value.secret, ()):
            raise GiveUp(
                f"the secret {value.secret!r} must not be sent to {self._target.authority} by this "
                "worker; an operator can add the target in [kinds.grpc.secrets]"
            )
        current, *_ = secret(value.secret)
        self._secrets.append(current)
        return value.text + current

    async def _prepare(
        self, channel: grpc.aio.Channel, message: Json, metadata: Metadata
    ) -> tuple[Unary, bytes]:
        """Return the method's types and the request's bytes.

        The schema may come from the cache and be old. If the call doesn't fit it, ask once more.
        """
        file = self._settings.descriptors.get(self._target.authority)
        try:
            if file is not None:
                return await self._encode(await asyncio.to_thread(schema.from_file, file), message)
            known = SCHEMAS.get(self._key)
            if known is not None:
                with contextlib.suppress(Mismatch):
                    return await self._encode(known, message)
            fresh = await schema.from_server(
                channel, self._method.service, metadata=metadata, within=self._time_left()
            )
            SCHEMAS.put(self._key, fresh)
            return await self._encode(fresh, message)
        except Mismatch as error:
            raise GiveUp(str(error)) from None

    async def _encode(self, known: ServiceSchema, message: Json) -> tuple[Unary, bytes]:
        unary = known.method(self._method)
        # A large message takes long enough to delay the other jobs of the loop.
        return unary, await asyncio.to_thread(unary.encode, message)

    async def _send(self, channel: grpc.aio.Channel, request: bytes, metadata: Metadata) -> bytes:
        own = [
            ("idempotency-key", self._job.idempotency_key),
            ("tenure-attempt", str(self._job.attempt)),
            ("tenure-fence", str(self._job.fence)),
        ]
        method: Any = channel.unary_unary(self._method.path)  # Without a serializer: bytes.
        try:
            # A cancelled handler cancels the call.
            response: bytes = await method(
                request, metadata=(*own, *metadata), timeout=self._time_left()
            )
        except grpc.aio.AioRpcError as error:
            if error.code() is grpc.StatusCode.UNIMPLEMENTED:
                SCHEMAS.drop(self._key)
            raise
        return response

    async def _result(self, unary: Unary, response: bytes) -> dict[str, Json]:
        """Return the result. The call has succeeded, so nothing here may have it repeated."""
        try:
            decoded = await asyncio.to_thread(_decoded, unary, response)
            result: dict[str, Json] = {"status": "OK", "response": self._without_secrets(decoded)}
            payload.encode(result, limit=payload.MAX_RESULT, what="a result")
        except (PayloadError, ValueError) as error:
            why = self._without_secrets(str(error)[:_LONGEST_DETAILS])
            return {"status": "OK", "response": None, "omitted": why}
        return result

    @contextlib.contextmanager
    def _judged(self) -> Iterator[None]:
        """Turn what went wrong into a retry or a dead letter, without secrets."""
        where = f"{self._method.full_name} on {self._target.authority}"
        try:
            yield
        except grpc.aio.AioRpcError as error:
            raise self._ending(where, error) from None
        except TimeoutError:
            raise Retry(f"{where}: the server did not describe the service in time") from None
        except RequestFailed as error:
            raise Retry(f"{where}: {error}") from None
        except (GiveUp, ConfigError) as error:
            raise type(error)(f"{where}: {self._without_secrets(str(error))}") from None

    def _ending(self, where: str, error: grpc.aio.AioRpcError) -> GiveUp | Retry:
        code, details = error.code(), self._without_secrets(error.details() or "no details")
        text = f"{where} returned {code.name}: {details[:_LONGEST_DETAILS]}"
        pushback = _pushback(error.trailing_metadata())
        if (
            code not in _RETRYABLE
            or (pushback is not None and pushback < timedelta(0))
            or (code is grpc.StatusCode.RESOURCE_EXHAUSTED
                and any(each in details.lower() for each in _TOO_LARGE))
        ):  # fmt: skip
            return GiveUp(text)
        after = None if pushback is None else min(pushback, DEFAULTS.backoff.cap)
        return Retry(text, after=after)

    def _without_secrets(self, value: Json) -> Json:
        """Return the value without secrets that a server may have sent back."""
        if not self._secrets:
            return value
        match value:
            case str():
                for each in self._secrets:
                    value = value.replace(each, _HIDDEN)
                return value
            case list():
                return [self._without_secrets(each) for each in value]
            case dict():
                return {
                    self._without_secrets(key): self._without_secrets(each)
                    for key, each in value.items()
                }
            case _:
                return value

    def _time_left(self) -> float | None:
        left = self._job.time_left
        if left is None:
            return None
        seconds = left.total_seconds()
        # The deadline is a little before the timeout, so that the attempt ends by the server's
        # status and not by being stopped.
        return max(seconds - min(0.5, seconds / 10), 0.001)

    @property
    def _key(self) -> tuple[object, ...]:
        return ("server", self._target, self._method.service)


def _decoded(unary: Unary, response: bytes) -> Json:
    if len(response) > _LARGEST_RESPONSE:
        raise ValueError(
            f"the response has {len(response):,} bytes, and a result must be at most "
            f"{payload.MAX_RESULT:,} bytes of JSON; have the server store it and return a reference"
        )
    return unary.decode(response)


def _pushback(metadata: Any) -> timedelta | None:
    """Return how long the server wants the client to wait, or a negative time for no retry."""
    values = [value for key, value in metadata or () if key == "grpc-retry-pushback-ms"]
    if not values:
        return None
    try:
        milliseconds = int(values[0])
    except ValueError:
        # gRPC's rule: what is not a number means no retry.
        return timedelta(-1)
    return timedelta(milliseconds=max(min(milliseconds, 10**9), -1))
