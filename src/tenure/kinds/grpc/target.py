"""The server, method and metadata of a gRPC call, as a job names them."""

import re
from collections.abc import Mapping
from typing import NamedTuple

from tenure._model.ids import Json
from tenure.errors import InvalidValue
from tenure.kinds.settings import is_secret_name

_HOST = re.compile(r"(?=.{1,253}\Z)[A-Za-z0-9_](?:[A-Za-z0-9_-]*[A-Za-z0-9_])?"
                   r"(?:\.[A-Za-z0-9_](?:[A-Za-z0-9_-]*[A-Za-z0-9_])?)*\.?")  # fmt: skip
_IPV6 = re.compile(r"\[([0-9A-Fa-f:.]{2,45})\]")
_METHOD = re.compile(r"/?([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)/([A-Za-z_]\w*)", re.ASCII)
_KEY = re.compile(r"[a-z0-9_.-]{1,100}")
_VALUE = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?|")
# A server accepts 8 KiB of metadata by default, and Tenure's own needs some of it.
_LARGEST_METADATA = 6 * 1024
_LONGEST_METHOD = 400
# These belong to HTTP/2, to gRPC, or to Tenure.
_RESERVED = {
    "connection", "content-length", "content-type", "host", "idempotency-key", "te",
    "tenure-attempt", "tenure-fence", "transfer-encoding", "user-agent",
}  # fmt: skip
_SECRET = {"authorization", "cookie", "proxy-authorization"}


class GrpcTarget(NamedTuple):
    """A server's host and port. The host has no brackets and is in lower case."""

    host: str
    port: int

    @property
    def authority(self) -> str:
        """The host and port as one text, in one spelling."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class Method(NamedTuple):
    """A method, by the full name of its service and its own name."""

    service: str
    name: str

    @property
    def path(self) -> str:
        """The path of the HTTP/2 request."""
        return f"/{self.service}/{self.name}"

    @property
    def full_name(self) -> str:
        """The method as people write it."""
        return f"{self.service}/{self.name}"


class MetadataValue(NamedTuple):
    """A text, or the prefix of a secret that the worker fills in."""

    text: str
    secret: str | None = None


def parse_target(text: object) -> GrpcTarget:
    """Return the host and port. Raise InvalidValue for anything else, such as a scheme."""
    host, colon, port = text.rpartition(":") if isinstance(text, str) else ("", "", "")
    bracketed = _IPV6.fullmatch(host)
    if not (
        colon
        and (bracketed or _HOST.fullmatch(host))
        and port.isascii()
        and port.isdecimal()
        and len(port) <= 5
        and 0 < int(port) < 65536
    ):
        raise InvalidValue(
            f"target must be HOST:PORT without a scheme, got {text!r}; write it as "
            "'billing.example.com:443'"
        )
    return GrpcTarget((bracketed[1] if bracketed else host).lower().removesuffix("."), int(port))


def parse_method(text: object) -> Method:
    """Return the service and method. Raise InvalidValue for anything else."""
    match = _METHOD.fullmatch(text) if isinstance(text, str) else None
    if match is None or len(match[0]) > _LONGEST_METHOD:
        raise InvalidValue(
            f"method must be SERVICE/METHOD with the service's full name, got {text!r}; write it "
            "as 'billing.Invoices/Create'"
        )
    return Method(match[1], match[2])


def read_metadata(metadata: object) -> Mapping[str, MetadataValue]:
    """Return the metadata. Raise InvalidValue for names or values that a call cannot carry."""
    if metadata is None:
        return {}
    if not isinstance(metadata, Mapping) or not all(isinstance(key, str) for key in metadata):
        raise InvalidValue(
            f"metadata must be a mapping of texts, got {type(metadata).__name__}; write it as "
            "{'x-tenant': '7'}"
        )
    values: dict[str, MetadataValue] = {}
    for key, value in metadata.items():
        if not _KEY.fullmatch(key) or key in _RESERVED or key.startswith("grpc-"):
            raise InvalidValue(
                f"a metadata name must be lower case and not reserved, got {key!r}; write a name "
                "such as 'x-tenant'"
            )
        if key.endswith("-bin"):
            raise InvalidValue(
                f"a metadata name must not end in -bin, got {key!r}; binary metadata cannot be "
                "sent, so send the value as text under another name"
            )
        values[key] = _value(key, value)
    size = sum(len(key) + len(value.text) + 32 for key, value in values.items())
    if size > _LARGEST_METADATA:
        raise InvalidValue(
            f"metadata must be at most {_LARGEST_METADATA:,} bytes, got {size:,}; send the data in "
            "the message"
        )
    return values


def _value(key: str, value: Json) -> MetadataValue:
    if isinstance(value, Mapping):
        text = value.get("prefix", "")
        is_known = value.keys() <= {"secret", "prefix"} and is_secret_name(value.get("secret"))
        if not is_known or not isinstance(text, str) or not _VALUE.fullmatch(text.rstrip(" ")):
            raise InvalidValue(
                f"metadata[{key!r}] must name a secret by letters, digits and _; write it as "
                '{"secret": "billing", "prefix": "Bearer "}'
            )
        return MetadataValue(text, value["secret"])
    if key in _SECRET:
        raise InvalidValue(
            f"metadata[{key!r}] must not be a text, because arguments are stored; name a secret of "
            'the worker: {"secret": "billing", "prefix": "Bearer "}'
        )
    if not isinstance(value, str) or not _VALUE.fullmatch(value):
        raise InvalidValue(
            f"metadata[{key!r}] must be printable ASCII without spaces at its ends, got {value!r}; "
            "encode the value first"
        )
    return MetadataValue(value)
