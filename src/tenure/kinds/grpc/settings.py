"""The table `[kinds.grpc]` of a worker's configuration."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tenure.errors import ConfigError, InvalidValue
from tenure.kinds.grpc.target import parse_target
from tenure.kinds.http.addresses import AddressRules, read_entry
from tenure.kinds.settings import is_secret_name, settings_of

MESSAGE_SIZES = range(64 * 1024, 64 * 1024 * 1024 + 1)
_MESSAGE_SIZE = 4 * 1024 * 1024
_NAMES = (
    "allow", "ca_file", "certificates", "descriptors", "max_message", "plaintext", "public",
    "secrets",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class GrpcCertificate:
    """The files of a client certificate and its private key, in PEM."""

    cert: Path
    key: Path


@dataclass(frozen=True, slots=True)
class GrpcSettings:
    """The settings of gRPC work. Targets are written as in `GrpcTarget.authority`."""

    rules: AddressRules
    plaintext: frozenset[str]
    ca_file: Path | None
    certificates: Mapping[str, GrpcCertificate]
    descriptors: Mapping[str, Path]
    secrets: Mapping[str, frozenset[str]]
    max_message: int


def load() -> GrpcSettings:
    """Read and check the settings. They are read again for each call.

    Raises:
        ConfigError: A name or value is invalid.
    """
    table = settings_of("grpc")
    for name in table:
        if name not in _NAMES:
            raise ConfigError(
                f"kinds.grpc has no setting {name!r}; the settings are {', '.join(_NAMES)}"
            )
    size = table.get("max_message", _MESSAGE_SIZE)
    if type(size) is not int or size not in MESSAGE_SIZES:
        raise ConfigError(
            f"kinds.grpc.max_message must be {MESSAGE_SIZES[0]} to {MESSAGE_SIZES[-1]} bytes, got "
            f"{size!r}; write a number such as {_MESSAGE_SIZE}"
        )
    public = table.get("public", True)
    if not isinstance(public, bool):
        raise ConfigError(
            f"kinds.grpc.public must be true or false, got {public!r}; write public = false to "
            "call only hosts of allow"
        )
    ca = table.get("ca_file")
    allow = [read_entry(each, "kinds.grpc.allow") for each in _texts(table, "allow")]
    return GrpcSettings(
        rules=AddressRules(allow, public, "[kinds.grpc]"),
        plaintext=frozenset(_target("plaintext", each) for each in _texts(table, "plaintext")),
        ca_file=None if ca is None else _path("ca_file", ca),
        certificates=_certificates(_table(table, "certificates")),
        descriptors={
            _target("descriptors", target): _path(f"descriptors.{target}", file)
            for target, file in _table(table, "descriptors").items()
        },
        secrets=_secrets(_table(table, "secrets")),
        max_message=size,
    )


def check_files(settings: GrpcSettings) -> None:
    """Raise ConfigError if a file that the settings name cannot be read."""
    files = [*settings.descriptors.values()]
    for pair in settings.certificates.values():
        files += [pair.cert, pair.key]
    if settings.ca_file is not None:
        files.append(settings.ca_file)
    for file in files:
        read(file)


def read(file: Path) -> bytes:
    """Return a file's bytes. Raise ConfigError if it cannot be read."""
    try:
        return file.read_bytes()
    except OSError as error:
        raise ConfigError(
            f"a file of kinds.grpc cannot be read: {file}: {error.strerror}; fix the path or its "
            "permissions"
        ) from None


def _texts(table: Mapping[str, Any], name: str) -> Sequence[str]:
    values = table.get(name, [])
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise ConfigError(
            f"kinds.grpc.{name} must be a list of texts, got {values!r}; write it as "
            f"""{name} = ["billing.internal:50051"]"""
        )
    return values


def _table(table: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    values = table.get(name, {})
    if not isinstance(values, dict):
        raise ConfigError(
            f"kinds.grpc.{name} must be a table, got {values!r}; write it as [kinds.grpc.{name}]"
        )
    return values


def _target(name: str, text: str) -> str:
    try:
        return parse_target(text).authority
    except InvalidValue as error:
        raise ConfigError(f"kinds.grpc.{name}: {error}") from None


def _path(name: str, value: object) -> Path:
    if not isinstance(value, str) or not Path(value).is_absolute():
        raise ConfigError(
            f"kinds.grpc.{name} must be an absolute path, got {value!r}; write it as "
            "'/etc/tenure/billing.pem'"
        )
    return Path(value)


def _certificates(table: Mapping[str, Any]) -> Mapping[str, GrpcCertificate]:
    pairs: dict[str, GrpcCertificate] = {}
    for target, files in table.items():
        if not isinstance(files, dict) or files.keys() != {"cert", "key"}:
            raise ConfigError(
                f"kinds.grpc.certificates.{target} must have cert and key, got {files!r}; write it "
                "as {cert = '/etc/tenure/client.pem', key = '/etc/tenure/client.key'}"
            )
        names = f"certificates.{target}.cert", f"certificates.{target}.key"
        pairs[_target("certificates", target)] = GrpcCertificate(
            _path(names[0], files["cert"]), _path(names[1], files["key"])
        )
    return pairs


def _secrets(table: Mapping[str, Any]) -> Mapping[str, frozenset[str]]:
    secrets: dict[str, frozenset[str]] = {}
    for name in table:
        if not is_secret_name(name):
            raise ConfigError(
                f"kinds.grpc.secrets must have names of letters, digits and _, got {name!r}; write "
                "a name such as billing"
            )
        targets = _texts(table, name) if isinstance(table[name], list) else [table[name]]
        secrets[name] = frozenset(_target(f"secrets.{name}", target) for target in targets)
    return secrets
