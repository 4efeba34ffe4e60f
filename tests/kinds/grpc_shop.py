"""The schema of the gRPC servers of this suite, built without protoc."""

from __future__ import annotations

from typing import TYPE_CHECKING

from google.protobuf import any_pb2, descriptor_pb2, message_factory, timestamp_pb2
from google.protobuf.descriptor_pool import DescriptorPool

if TYPE_CHECKING:
    from collections.abc import Sequence

    from google.protobuf.message import Message

Field = descriptor_pb2.FieldDescriptorProto
_TYPES = {
    "string": Field.TYPE_STRING,
    "int64": Field.TYPE_INT64,
    "bytes": Field.TYPE_BYTES,
    "double": Field.TYPE_DOUBLE,
}


def message(name: str, fields: Sequence[tuple[str, str]]) -> descriptor_pb2.DescriptorProto:
    """A message type. A type in upper case is an enum, one that starts with a dot a message."""
    made = descriptor_pb2.DescriptorProto(name=name)
    for number, (field, written) in enumerate(fields, 1):
        one = made.field.add(name=field, number=number, label=Field.LABEL_OPTIONAL)
        kind = written.removeprefix("[]")
        if kind != written:
            one.label = Field.LABEL_REPEATED
        if kind in _TYPES:
            one.type = _TYPES[kind]
        else:
            one.type = Field.TYPE_ENUM if kind.endswith("Size") else Field.TYPE_MESSAGE
            one.type_name = kind
    return made


def shop() -> Sequence[descriptor_pb2.FileDescriptorProto]:
    """Two files: the second imports the first and well-known types."""
    sizes = descriptor_pb2.FileDescriptorProto(
        name="shop/size.proto", package="shop", syntax="proto3"
    )
    size = sizes.enum_type.add(name="Size")
    size.value.add(name="SMALL", number=0)
    size.value.add(name="LARGE", number=1)
    orders = descriptor_pb2.FileDescriptorProto(
        name="shop/orders.proto",
        package="shop",
        syntax="proto3",
        dependency=[
            "shop/size.proto",
            timestamp_pb2.DESCRIPTOR.name,
            any_pb2.DESCRIPTOR.name,
        ],
        message_type=[
            message(
                "Order",
                [
                    ("item", "string"),
                    ("number", "int64"),
                    ("placed_at", ".google.protobuf.Timestamp"),
                    ("size", ".shop.Size"),
                    ("tags", "[]string"),
                    ("inner", ".shop.Order"),
                    ("more", ".google.protobuf.Any"),
                ],
            ),
            message(
                "Receipt",
                [
                    ("text", "string"),
                    ("number", "int64"),
                    ("placed_at", ".google.protobuf.Timestamp"),
                    ("size", ".shop.Size"),
                    ("data", "bytes"),
                    ("more", ".google.protobuf.Any"),
                    ("price", "double"),
                ],
            ),
        ],
    )
    service = orders.service.add(name="Orders")
    for name, sends, gets in [
        ("Place", False, False),
        ("Missing", False, False),
        ("Watch", False, True),
        ("Upload", True, False),
    ]:
        service.method.add(
            name=name,
            input_type=".shop.Order",
            output_type=".shop.Receipt",
            client_streaming=sends,
            server_streaming=gets,
        )
    return [sizes, orders]


def pool() -> DescriptorPool:
    made = DescriptorPool()
    for file in (timestamp_pb2, any_pb2):
        made.AddSerializedFile(file.DESCRIPTOR.serialized_pb)
    for each in shop():
        made.Add(each)
    return made


def types() -> tuple[type[Message], type[Message]]:
    """The classes of an order and of a receipt."""
    known = pool()
    order = known.FindMessageTypeByName("shop.Order")
    receipt = known.FindMessageTypeByName("shop.Receipt")
    return message_factory.GetMessageClass(order), message_factory.GetMessageClass(receipt)


def descriptor_set(*, complete: bool = True) -> bytes:
    """What protoc writes, with or without the file that the service's file imports."""
    files = shop() if complete else shop()[1:]
    return descriptor_pb2.FileDescriptorSet(file=files).SerializeToString()
