"""What an enqueue of gRPC work refuses, and what a worker's configuration must be."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from tenure import Tenure
from tenure.errors import ConfigError, InvalidValue
from tenure.kinds import grpc

if TYPE_CHECKING:
    from pathlib import Path

TARGET, METHOD = "billing.example.com:443", "billing.Invoices/Create"


def call(target: Any = TARGET, method: Any = METHOD, message: Any = None, **more: Any) -> Any:
    return Tenure("postgresql://nowhere").grpc(target, method, message, **more)


@pytest.mark.parametrize(
    "target",
    [
        "billing", "billing:", ":443", "billing:0", "billing:65536", "billing:http", "",
        "https://billing:443", "unix:/run/app.sock", "unix:///run/app.sock", "dns:///billing:443",
        "ipv4:10.0.0.1:443", "xds:///billing", "vsock:1:2", "a b:443", "billing:443/path",
        "user@billing:443", "::1:443", "[::1]", "[::1%lo]:443", "billing:٤٤٣", "billing:443\n",
        "a..b:443", "-a:443", "x" * 300 + ":443", 443, None, ["billing:443"],
    ],
)  # fmt: skip
def test_a_target_is_a_host_and_a_port(target: Any) -> None:
    with pytest.raises(InvalidValue, match=r"target must be|argument 'target' is"):
        call(target)


@pytest.mark.parametrize(
    "target", ["billing:443", "Billing.Example.com.:50051", "[::1]:443", "10.0.0.1:1", "a_b:443"]
)
def test_hosts_and_addresses_are_targets(target: str) -> None:
    assert call(target).arguments["target"] == target


@pytest.mark.parametrize(
    "method",
    ["Create", "Invoices.Create", "a/b/c", "/", "a/", "/b", "a b/c", "", "a/b?c", "1a/b", 7, None],
)
def test_a_method_is_a_service_and_a_name(method: Any) -> None:
    with pytest.raises(InvalidValue, match=r"method must be|argument 'method' is"):
        call(method=method)


@pytest.mark.parametrize(
    ("metadata", "why"),
    [
        ({"X-Tenant": "7"}, "lower case"),
        ({":path": "/"}, "lower case"),
        ({"grpc-timeout": "1S"}, "reserved"),
        ({"idempotency-key": "7"}, "reserved"),
        ({"tenure-fence": "7"}, "reserved"),
        ({"user-agent": "7"}, "reserved"),
        ({"trace-bin": "AAAA"}, "-bin"),
        ({"authorization": "Bearer x"}, "name a secret"),
        ({"cookie": "x"}, "name a secret"),
        ({"x-tenant": "ä"}, "printable"),
        ({"x-tenant": "7\r\nx: y"}, "printable"),
        ({"x-tenant": 7}, "match|printable|str"),
        ({"x-tenant": "7" * 7000}, "bytes"),
    ],
)
def test_metadata_is_text_that_grpc_can_carry(metadata: Any, why: str) -> None:
    with pytest.raises(InvalidValue, match=why):
        call(metadata=metadata)


@pytest.mark.parametrize(
    "value",
    [
        {"secret": "a b"},
        {"secret": "../etc/passwd"},
        {"secret": ""},
        {"secret": 7},
        {"secret": "billing", "prefix": "\n"},
        {"secret": "billing", "suffix": "x"},
        {"prefix": "Bearer "},
        {},
    ],
)
def test_secrets_are_named(value: Any) -> None:
    with pytest.raises(InvalidValue, match="must name a secret"):
        call(metadata={"authorization": value})


def test_a_refusal_does_not_repeat_what_may_be_a_secret() -> None:
    for value in ("Bearer the-secret-itself", {"secret": "the-secret-itself"}):
        with pytest.raises(InvalidValue) as raised:
            call(metadata={"authorization": value})
        assert "the-secret-itself" not in str(raised.value)


@pytest.mark.parametrize(
    ("table", "why"),
    [
        ({"alow": []}, "has no setting 'alow'"),
        ({"allow": "billing"}, "kinds.grpc.allow must be a list"),
        ({"allow": ["a b"]}, "kinds.grpc.allow must be"),
        ({"public": "no"}, "kinds.grpc.public must be true or false"),
        ({"plaintext": ["billing"]}, "kinds.grpc.plaintext: target must be"),
        ({"max_message": 10}, "kinds.grpc.max_message must be"),
        ({"max_message": True}, "kinds.grpc.max_message must be"),
        ({"ca_file": "ca.pem"}, "kinds.grpc.ca_file must be an absolute path"),
        ({"ca_file": "/nowhere/ca.pem"}, "cannot be read: /nowhere/ca.pem"),
        ({"descriptors": ["/x.pb"]}, "kinds.grpc.descriptors must be a table"),
        ({"descriptors": {"billing": "/x.pb"}}, "kinds.grpc.descriptors: target must be"),
        ({"descriptors": {"b:443": "x.pb"}}, "must be an absolute path"),
        ({"certificates": {"b:443": "/x.pem"}}, "must have cert and key"),
        ({"certificates": {"b:443": {"cert": "/x.pem", "key": "x"}}}, "absolute path"),
        ({"secrets": {"a b": ["b:443"]}}, "kinds.grpc.secrets must have names"),
        ({"secrets": {"billing": ["b"]}}, "kinds.grpc.secrets.billing: target must be"),
    ],
)
def test_a_worker_with_an_invalid_configuration_does_not_start(
    monkeypatch: pytest.MonkeyPatch, table: Any, why: str
) -> None:
    monkeypatch.setenv("TENURE_KINDS_GRPC", json.dumps(table))

    with pytest.raises(ConfigError, match=why):
        grpc.prepare()


def test_a_program_that_enqueues_does_not_load_grpc(tmp_path: Path) -> None:
    program = (
        "import sys\n"
        "from tenure import Tenure\n"
        f"Tenure('postgresql://nowhere').grpc({TARGET!r}, {METHOD!r}, {{}})\n"
        "from tenure.kinds import grpc\n"
        "grpc.prepare()\n"
        "print([name for name in ('grpc', 'google.protobuf') if name in sys.modules])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True
    )

    assert done.stdout.strip() == "[]"


def test_a_worker_without_the_extra_does_not_start(tmp_path: Path) -> None:
    program = (
        "import sys\n"
        "sys.modules['grpc_reflection'] = None\n"
        "from tenure.kinds import grpc\n"
        "grpc._exists = lambda module: module != 'grpc_reflection'\n"
        "grpc.prepare()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False
    )

    assert "pip install 'tenure[grpc]'" in done.stderr
