"""Message types of a gRPC method, from server reflection or from a descriptor set.

Only the handler imports this module, because it needs protobuf.

A server is not trusted: it could answer with endless, huge or contradicting descriptors. The number
of files, their bytes and the time for reading them are limited, and each schema has a pool of its
own, so that one server cannot change the types of another.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any, NamedTuple

import grpc
from google.protobuf import (
    any_pb2,
    api_pb2,
    descriptor_pb2,
    duration_pb2,
    empty_pb2,
    field_mask_pb2,
    json_format,
    message_factory,
    source_context_pb2,
    struct_pb2,
    timestamp_pb2,
    type_pb2,
    wrappers_pb2,
)
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError, Message
from grpc_reflection.v1alpha import reflection_pb2

from tenure._model.ids import Json
from tenure._model.outcome import GiveUp
from tenure.errors import ConfigError
from tenure.kinds.grpc import settings
from tenure.kinds.grpc.target import Method

MAX_FILES = 500
MAX_BYTES = 4 * 1024 * 1024
# How long a server has to describe a service.
REFLECTION_WITHIN = 10.0
_MAX_SCHEMAS = 32
_KEPT_FOR = 600.0
_MAX_DEPTH = 64
# The messages of both versions are the same on the wire. The first is the current one.
_REFLECTION = (
    "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
    "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
)
# The well-known types always come from protobuf itself, whose JSON mapping relies on their fields.
_WELL_KNOWN = {
    module.DESCRIPTOR.name: descriptor_pb2.FileDescriptorProto.FromString(
        module.DESCRIPTOR.serialized_pb
    )
    for module in (
        any_pb2, api_pb2, descriptor_pb2, duration_pb2, empty_pb2, field_mask_pb2,
        source_context_pb2, struct_pb2, timestamp_pb2, type_pb2, wrappers_pb2,
    )
}  # fmt: skip

Metadata = Sequence[tuple[str, str]]
Files = dict[str, descriptor_pb2.FileDescriptorProto]


class Mismatch(Exception):
    """The method or the message doesn't fit the schema, which may be an old one."""


class Unary(NamedTuple):
    """The types of a unary method, and the pool that they belong to."""

    request: type[Message]
    response: type[Message]
    pool: DescriptorPool

    def encode(self, message: Json) -> bytes:
        """Return the request's bytes. Raise Mismatch if the JSON doesn't fit the type."""
        parsed = self.request()
        try:
            json_format.ParseDict(
                message, parsed, descriptor_pool=self.pool, max_recursion_depth=_MAX_DEPTH
            )
            return parsed.SerializeToString()
        except Exception as error:  # noqa: BLE001 - the parser raises more than ParseError
            name = self.request.DESCRIPTOR.full_name
            raise Mismatch(f"message must fit the type {name}: {error}") from None

    def decode(self, response: bytes) -> Json:
        """Return the response as JSON. Raise ValueError if it cannot be written as JSON."""
        parsed = self.response()
        try:
            parsed.ParseFromString(response)
            return json_format.MessageToDict(parsed, descriptor_pool=self.pool)
        except Exception as error:  # noqa: BLE001 - an unknown `Any` raises TypeError, for one
            name = self.response.DESCRIPTOR.full_name
            raise ValueError(f"it does not fit the type {name}: {error}") from None


class ServiceSchema:
    """The types of a service and of everything that it uses."""

    def __init__(self, files: Mapping[str, descriptor_pb2.FileDescriptorProto]) -> None:
        self._pool = DescriptorPool()
        files = _with_well_known(files)
        for name in _in_order(files):
            try:
                self._pool.AddSerializedFile(files[name].SerializeToString())
            except Exception as error:  # noqa: BLE001 - protobuf raises TypeError and more
                raise GiveUp(f"the descriptor of {name!r} is invalid: {error}") from None

    def method(self, method: Method) -> Unary:
        """Return the method's types.

        Raises:
            Mismatch: The service has no such method.
            GiveUp: The method streams.
        """
        try:
            service = self._pool.FindServiceByName(method.service)
            found = service.methods_by_name[method.name]
        except KeyError:
            raise Mismatch(f"the server describes no method {method.full_name}") from None
        if found.client_streaming or found.server_streaming:
            raise GiveUp(
                f"{method.full_name} is a streaming method, and gRPC work calls only unary "
                "methods; call it from a task of your own"
            )
        return Unary(
            message_factory.GetMessageClass(found.input_type),
            message_factory.GetMessageClass(found.output_type),
            self._pool,
        )


@dataclass(slots=True)
class _Cached:
    schema: ServiceSchema
    until: float


class SchemaCache:
    """Schemas by key, limited in number and age. The schema used last is kept longest."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._schemas: dict[tuple[object, ...], _Cached] = {}

    def get(self, key: tuple[object, ...]) -> ServiceSchema | None:
        """Return the schema, or None if it isn't known or too old."""
        cached = self._schemas.pop(key, None)
        if cached is None or cached.until <= self._clock():
            return None
        self._schemas[key] = cached
        return cached.schema

    def put(self, key: tuple[object, ...], schema: ServiceSchema) -> None:
        """Keep a schema. The one that was not used for longest makes room for it."""
        self._schemas.pop(key, None)
        self._schemas[key] = _Cached(schema, self._clock() + _KEPT_FOR)
        while len(self._schemas) > _MAX_SCHEMAS:
            del self._schemas[next(iter(self._schemas))]

    def drop(self, key: tuple[object, ...]) -> None:
        """Forget a schema."""
        self._schemas.pop(key, None)

    def __len__(self) -> int:
        return len(self._schemas)


SCHEMAS = SchemaCache()


def from_file(file: Path) -> ServiceSchema:
    """Return the schema of a descriptor set, as `protoc --include_imports` writes it.

    Raises:
        ConfigError: The file can't be read, or isn't a complete descriptor set.
    """
    try:
        status = file.stat()
    except OSError:
        status = None
    key = ("file", file, None if status is None else status.st_mtime_ns)
    schema = SCHEMAS.get(key)
    if schema is None:
        descriptors = descriptor_pb2.FileDescriptorSet()
        try:
            descriptors.ParseFromString(settings.read(file))
            schema = ServiceSchema({each.name: each for each in descriptors.file})
        except (DecodeError, GiveUp) as error:
            raise ConfigError(
                f"{file} must be a descriptor set with all imports: {error}; write it with "
                "protoc --include_imports --descriptor_set_out"
            ) from None
        SCHEMAS.put(key, schema)
    return schema


async def from_server(
    channel: grpc.aio.Channel, service: str, *, metadata: Metadata, within: float | None
) -> ServiceSchema:
    """Ask a server to describe a service.

    Raises:
        GiveUp: The server has no reflection or no such service, or its answer is invalid or too
            large.
        grpc.aio.AioRpcError: The call failed.
        TimeoutError: The server took too long.
    """
    limit = REFLECTION_WITHIN if within is None else min(within, REFLECTION_WITHIN)
    async with asyncio.timeout(limit):
        for path in _REFLECTION:
            try:
                files = await _ask(channel, path, service, metadata=metadata, within=limit)
            except grpc.aio.AioRpcError as error:
                if error.code() is not grpc.StatusCode.UNIMPLEMENTED:
                    raise
            else:
                return ServiceSchema(files)
    raise GiveUp(
        "the server has no reflection; enable it there, or name a descriptor set of this target in "
        "[kinds.grpc.descriptors]"
    )


async def _ask(
    channel: grpc.aio.Channel, path: str, service: str, *, metadata: Metadata, within: float
) -> Files:
    # The method streams in both directions, but each question is a call of its own: a write to a
    # stream that the server has ended would hide the server's status.
    method: Any = channel.unary_stream(path)  # Without a serializer, it takes bytes.
    files: Files = {}
    seen, pending = {*_WELL_KNOWN}, deque[str]()
    question, size = _by_symbol(service), 0
    for _ in range(MAX_FILES):
        call = method(question, metadata=metadata, timeout=within)
        try:
            answer = await call.read()
        finally:
            call.cancel()
        if answer is grpc.aio.EOF:
            raise GiveUp("the server ended reflection before it described the service")
        size += len(answer)
        for file in _described(answer, service):
            files.setdefault(file.name, file)
            pending.extend(each for each in file.dependency if each not in seen)
            seen.update(file.dependency)
        while pending and pending[0] in files:
            pending.popleft()
        if size > MAX_BYTES or len(files) > MAX_FILES:
            break
        if not pending:
            return files
        question = _by_filename(pending.popleft())
    raise GiveUp(
        f"the server must describe the service in at most {MAX_FILES} files and {MAX_BYTES:,} "
        "bytes, and it sends more; name a descriptor set of this target in "
        "[kinds.grpc.descriptors]"
    )


def _by_symbol(name: str) -> bytes:
    return reflection_pb2.ServerReflectionRequest(file_containing_symbol=name).SerializeToString()


def _by_filename(name: str) -> bytes:
    return reflection_pb2.ServerReflectionRequest(file_by_filename=name).SerializeToString()


def _described(answer: bytes, service: str) -> Iterable[descriptor_pb2.FileDescriptorProto]:
    try:
        response = reflection_pb2.ServerReflectionResponse.FromString(answer)
        if response.HasField("error_response"):
            why = response.error_response.error_message[:200]
            raise GiveUp(f"the server does not describe the service {service}: {why}")
        return [
            descriptor_pb2.FileDescriptorProto.FromString(file)
            for file in response.file_descriptor_response.file_descriptor_proto
        ]
    except DecodeError:
        raise GiveUp("the server's descriptors are not valid protobuf") from None


def _with_well_known(
    files: Mapping[str, descriptor_pb2.FileDescriptorProto],
) -> Mapping[str, descriptor_pb2.FileDescriptorProto]:
    """Replace or add the well-known files."""
    complete = dict(files)
    pending = [*files, *(each for file in files.values() for each in file.dependency)]
    while pending:
        name = pending.pop()
        if name in _WELL_KNOWN and complete.get(name) is not _WELL_KNOWN[name]:
            complete[name] = _WELL_KNOWN[name]
            pending += _WELL_KNOWN[name].dependency
    return complete


def _in_order(files: Mapping[str, descriptor_pb2.FileDescriptorProto]) -> Sequence[str]:
    """Return the names so that each file follows its imports. Raise GiveUp if that can't be."""
    ordered: dict[str, None] = {}
    for start in files:
        # A stack instead of recursion: a chain of imports may be as long as there are files.
        path: dict[str, None] = {}
        stack = [(start, False)]
        while stack:
            name, done = stack.pop()
            if done:
                del path[name]
                ordered[name] = None
            elif name in path:
                raise GiveUp(f"the descriptor of {name!r} imports itself")
            elif name not in ordered:
                if name not in files:
                    raise GiveUp(f"the descriptor of {name!r} is missing")
                path[name] = None
                stack.append((name, True))
                stack += [(each, False) for each in files[name].dependency]
    return list(ordered)
