"""A gRPC server as a process, which answers as a request says: `python -m … DIRECTORY`.

It prints its ports as JSON, and writes each request that it has read to DIRECTORY/requests.
"""

from __future__ import annotations

import json
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import grpc
from google.protobuf import descriptor_pb2
from grpc_reflection.v1alpha import reflection, reflection_pb2

from tests.kinds import grpc_shop

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ORDER, RECEIPT = grpc_shop.types()
Answer = reflection_pb2.ServerReflectionResponse
Question = reflection_pb2.ServerReflectionRequest
_V1 = "grpc.reflection.v1.ServerReflection"
_V1ALPHA = "grpc.reflection.v1alpha.ServerReflection"


class Shop:
    """The service, which does what `item` says."""

    def __init__(self, directory: Path) -> None:
        self._requests = directory / "requests"
        self._lock = threading.Lock()

    def note(self, context: grpc.ServicerContext, **more: Any) -> None:
        metadata = {key: str(value) for key, value in context.invocation_metadata()}
        left = context.time_remaining()
        line = json.dumps({"metadata": metadata, "time_left": left, **more})
        with self._lock, self._requests.open("a") as file:
            file.write(line + "\n")

    def place(self, order: Any, context: grpc.ServicerContext) -> Any:
        word, _, rest = order.item.partition(":")
        self.note(context, item=order.item)
        if word == "status":
            name, _, pushback = rest.partition(":")
            if pushback:
                context.set_trailing_metadata((("grpc-retry-pushback-ms", pushback),))
            context.abort(grpc.StatusCode[name], f"because of {order.number}")
        elif word == "once":
            # The first attempt of a job fails, by what the metadata say.
            if dict(context.invocation_metadata())["tenure-attempt"] == "1":
                context.set_trailing_metadata((("grpc-retry-pushback-ms", "0"),))
                context.abort(grpc.StatusCode.UNAVAILABLE, "not yet")
        elif word == "slow":
            ended = threading.Event()
            context.add_callback(ended.set)
            ended.wait(30)
            self.note(context, item="cancelled")
        elif word == "large":
            return RECEIPT(text="x" * int(rest))
        elif word == "gzip":
            context.set_compression(grpc.Compression.Gzip)
            return RECEIPT(text="x" * int(rest))
        elif word == "echo":
            # A careless server repeats what it was sent.
            secret = dict(context.invocation_metadata()).get(rest, "")
            if order.number:
                context.abort(grpc.StatusCode.PERMISSION_DENIED, f"not allowed: {secret!r}")
            return RECEIPT(text=f"you sent {secret!r}")
        elif word == "any":
            receipt = RECEIPT()
            receipt.more.type_url = "type.googleapis.com/shop.Unknown"  # type: ignore[attr-defined]  # made at run time
            return receipt
        elif word == "infinite":
            return RECEIPT(price=float("inf"))
        return RECEIPT(
            text=f"{order.item} placed",
            number=order.number,
            placed_at=order.placed_at,
            size=order.size,
            data=b"\x00\xff",
        )

    def handlers(self) -> grpc.GenericRpcHandler:
        unary: Any = grpc.unary_unary_rpc_method_handler(
            self.place, ORDER.FromString, RECEIPT.SerializeToString
        )
        return grpc.method_handlers_generic_handler("shop.Orders", {"Place": unary})


class Reflection:
    """Describes services badly, each by its name."""

    def __init__(self, note: Callable[..., None]) -> None:
        self._note = note

    def answer(  # noqa: C901 - one case per way to answer
        self, questions: Iterator[Any], context: grpc.ServicerContext
    ) -> Iterator[bytes]:
        for count, question in enumerate(questions):
            self._note(context, reflection=question.file_containing_symbol or "file")
            name = question.file_containing_symbol or question.file_by_filename
            word = name.removeprefix("hostile.").partition("/")[0]
            match word:
                case "Endless":
                    yield described(file(f"Endless/{count}", imports=[f"Endless/{count + 1}"]))
                case "Wide":
                    yield described(file("Wide/0", imports=[f"Wide/{n}" for n in range(100_000)]))
                case "Huge":
                    large = file(f"Huge/{count}", imports=[f"Huge/{count + 1}"])
                    large.options.java_package = "x" * 1_000_000
                    yield described(large)
                case "Many":
                    yield described(*(file(f"Many/{n}") for n in range(2_000)))
                case "Garbage":
                    yield b"\xff\xff\xff"
                case "Nested":
                    yield Answer(
                        file_descriptor_response={"file_descriptor_proto": [b"\xff\xff\xff"]}
                    ).SerializeToString()
                case "Circle":
                    yield described(file("Circle/a", imports=["Circle/a"]))
                case "Empty":
                    yield described()
                case "Invalid":
                    broken = file("Invalid/a")
                    broken.message_type.add(name="not a name")
                    yield described(broken)
                case "Twice":
                    one, two = file("Twice/a", imports=["Twice/b"]), file("Twice/b")
                    one.message_type.add(name="Same")
                    two.message_type.add(name="Same")
                    yield described(one, two)
                case "Other":
                    yield described(file("Other/a"))
                case "Silent":
                    threading.Event().wait(20)
                case "Ended":
                    return
                case _:
                    yield Answer(
                        error_response={"error_code": 5, "error_message": "no such service"}
                    ).SerializeToString()

    def handlers(self) -> grpc.GenericRpcHandler:
        streaming: Any = grpc.stream_stream_rpc_method_handler(self.answer, Question.FromString)
        return grpc.method_handlers_generic_handler(_V1, {"ServerReflectionInfo": streaming})


def file(name: str, imports: list[str] | None = None) -> Any:
    return descriptor_pb2.FileDescriptorProto(
        name=name, package="hostile", syntax="proto3", dependency=imports or []
    )


def described(*files: Any) -> bytes:
    return Answer(
        file_descriptor_response={
            "file_descriptor_proto": [each.SerializeToString() for each in files]
        }
    ).SerializeToString()


def reflecting(version: str) -> grpc.GenericRpcHandler:
    servicer = reflection.ReflectionServicer(["shop.Orders"], pool=grpc_shop.pool())
    streaming: Any = grpc.stream_stream_rpc_method_handler(
        servicer.ServerReflectionInfo, Question.FromString, Answer.SerializeToString
    )
    return grpc.method_handlers_generic_handler(version, {"ServerReflectionInfo": streaming})


def serve(handlers: list[grpc.GenericRpcHandler], credentials: Any = None) -> tuple[Any, int]:
    server = grpc.server(ThreadPoolExecutor(16), options=[("grpc.so_reuseport", 0)])
    server.add_generic_rpc_handlers(tuple(handlers))
    if credentials is None:
        port = server.add_insecure_port("127.0.0.1:0")
    else:
        port = server.add_secure_port("127.0.0.1:0", credentials)
    server.start()
    return server, port


def main() -> None:
    directory = Path(sys.argv[1])
    shop = Shop(directory)
    orders = shop.handlers()
    pair = ((directory / "server.key").read_bytes(), (directory / "server.pem").read_bytes())
    ca = (directory / "authority.pem").read_bytes()
    stages: dict[str, Any] = {
        "plain": ([orders, reflecting(_V1)], None),
        "old": ([orders, reflecting(_V1ALPHA)], None),
        "bare": ([orders], None),
        "hostile": ([orders, Reflection(shop.note).handlers()], None),
        "tls": ([orders, reflecting(_V1)], grpc.ssl_server_credentials([pair])),
        "mutual": (
            [orders, reflecting(_V1)],
            grpc.ssl_server_credentials([pair], ca, require_client_auth=True),
        ),
    }
    started = {name: serve(*stage) for name, stage in stages.items()}
    print(json.dumps({name: port for name, (_, port) in started.items()}), flush=True)  # noqa: T201 - read by the suite
    sys.stdin.read()


if __name__ == "__main__":
    main()
