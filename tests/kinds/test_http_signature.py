"""Signatures, verified by the reference libraries of Standard Webhooks in Python and in Node."""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
import time
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st
from standardwebhooks import Webhook, WebhookVerificationError

from support.binaries import ROOT
from tenure.errors import ConfigError
from tenure.kinds.http.signature import sign

OLD = "whsec_" + base64.b64encode(b"o" * 32).decode()
NEW = "whsec_" + base64.b64encode(bytes(range(32))).decode()
OTHER = "whsec_" + base64.b64encode(b"x" * 32).decode()
LIBRARY = ROOT / ".cache/webhooks"
_IN_NODE = """
const { Webhook } = require("standardwebhooks");
const [secret, ...messages] = JSON.parse(require("fs").readFileSync(0, "utf8"));
const webhook = new Webhook(secret);
let verified = 0;
for (const { body, headers } of messages) {
  try { webhook.verify(body, headers); verified += 1; } catch (error) {}
}
console.log(JSON.stringify({ verified, of: messages.length }));
"""


def _headers(secrets: list[str], body: bytes, message_id: str = "tenure-7-abc") -> dict[str, str]:
    now = int(time.time())
    return {
        "webhook-id": message_id,
        "webhook-timestamp": str(now),
        "webhook-signature": sign(secrets, "orders", message_id, now, body),
    }


def in_node(secret: str, messages: list[dict[str, object]]) -> dict[str, int]:
    """How many messages the library in Node verifies."""
    node = shutil.which("node")
    assert node, "node is needed"
    assert (LIBRARY / "node_modules").is_dir(), "run `just webhooks` once"
    done = subprocess.run(
        [node, "-e", _IN_NODE],
        input=json.dumps([secret, *messages]),
        cwd=LIBRARY,
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
    )
    counts: dict[str, int] = json.loads(done.stdout)
    return counts


@given(body=st.text(st.characters(codec="utf-8")))
def test_the_library_in_python_verifies_each_body(body: str) -> None:
    headers = _headers([NEW], json.dumps(body).encode())
    assert Webhook(NEW).verify(json.dumps(body), headers) == body
    with pytest.raises(WebhookVerificationError):
        Webhook(OTHER).verify(json.dumps(body), headers)


def test_the_library_in_node_verifies_each_body() -> None:
    bodies = [json.dumps({"number": n, "text": "é☃\U0001f600" * n}) for n in range(200)]
    messages: list[dict[str, object]] = [
        {"body": body, "headers": _headers([NEW], body.encode(), f"tenure-{n}-x")}
        for n, body in enumerate(bodies)
    ]
    assert in_node(NEW, messages) == {"verified": 200, "of": 200}
    assert in_node(OTHER, messages) == {"verified": 0, "of": 200}


def test_vector_of_the_specification() -> None:
    """The example of the specification's own libraries."""
    secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"  # noqa: S105 - published
    body = b'{"test": 2432232314}'
    signature = sign([secret], "orders", "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, body)
    assert signature == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_two_secrets_make_two_signatures_and_both_receivers_verify() -> None:
    headers = _headers([NEW, OLD], b'"x"')
    assert len(headers["webhook-signature"].split(" ")) == 2
    for secret in (NEW, OLD):
        assert Webhook(secret).verify('"x"', headers) == "x"
        assert in_node(secret, [{"body": '"x"', "headers": headers}])["verified"] == 1


@pytest.mark.parametrize("has_public", [False, True])
def test_an_ed25519_key_makes_an_asymmetric_signature(has_public: bool) -> None:
    key = Ed25519PrivateKey.generate()
    raw = key.private_bytes_raw() + (key.public_key().public_bytes_raw() if has_public else b"")
    secret = f"whsk_{base64.b64encode(raw).decode()}"
    version, _, signature = sign([secret], "orders", "id", 7, b"body").partition(",")
    assert version == "v1a"
    key.public_key().verify(base64.b64decode(signature), b"id.7.body")


@pytest.mark.parametrize(
    "secret",
    ["whsec_not base64!", "whsec_" + base64.b64encode(b"short").decode(), "whsk_AAAA"],
)
def test_a_bad_secret_is_refused_without_repeating_it(secret: str) -> None:
    with pytest.raises(ConfigError, match="secret 'orders' must") as refused:
        sign([secret], "orders", "id", 7, b"")
    assert secret not in str(refused.value)


def test_the_lock_of_the_library_names_no_host() -> None:
    assert "resolved" not in Path(ROOT / "support/webhooks/package-lock.json").read_text()
