"""Sign requests as Standard Webhooks says: https://www.standardwebhooks.com."""

import base64
import binascii
import hashlib
import hmac
from collections.abc import Sequence

from tenure.errors import ConfigError

SHORTEST_KEY, LONGEST_KEY = 24, 64


def sign(secrets: Sequence[str], name: str, message_id: str, timestamp: int, body: bytes) -> str:
    """Return the `webhook-signature` header, with one signature for each current secret.

    Args:
        secrets: `whsec_…` for HMAC-SHA256 (`v1`), or `whsk_…` for Ed25519 (`v1a`).
        name: The secret's name, for error messages. They never contain the secret.
        message_id: The `webhook-id` header.
        timestamp: The `webhook-timestamp` header, in seconds.
        body: The request's body, as sent.

    Returns:
        Signatures separated by spaces.

    Raises:
        ConfigError: A secret is not in one of these forms.
    """
    content = f"{message_id}.{timestamp}.".encode() + body
    return " ".join(_signature(secret, name, content) for secret in secrets)


def _signature(secret: str, name: str, content: bytes) -> str:
    if secret.startswith("whsk_"):
        signed = _ed25519(_decoded(secret.removeprefix("whsk_"), name), name, content)
        return f"v1a,{base64.b64encode(signed).decode()}"
    key = _decoded(secret.removeprefix("whsec_"), name)
    if not SHORTEST_KEY <= len(key) <= LONGEST_KEY:
        raise ConfigError(
            f"secret {name!r} must have {SHORTEST_KEY} to {LONGEST_KEY} bytes, got {len(key)}; "
            "generate one: echo whsec_$(openssl rand -base64 32)"
        )
    return f"v1,{base64.b64encode(hmac.digest(key, content, hashlib.sha256)).decode()}"


def _decoded(text: str, name: str) -> bytes:
    try:
        # The reference library accepts base64 without padding, too.
        return base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except (binascii.Error, ValueError):
        raise ConfigError(
            f"secret {name!r} must be base64 after whsec_ or whsk_, got something else; generate "
            "one: echo whsec_$(openssl rand -base64 32)"
        ) from None


def _ed25519(key: bytes, name: str, content: bytes) -> bytes:
    try:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import (  # noqa: PLC0415 - optional
            Ed25519PrivateKey,
        )
    except ImportError:
        raise ConfigError(
            f"secret {name!r} is an Ed25519 key, which needs the package cryptography; install it: "
            "pip install cryptography"
        ) from None
    # Some tools append the public key to the 32 bytes of the private one.
    if len(key) not in {32, 64}:
        raise ConfigError(
            f"secret {name!r} must be an Ed25519 key of 32 or 64 bytes after whsk_, got {len(key)};"
            " generate a new one"
        )
    return Ed25519PrivateKey.from_private_bytes(key[:32]).sign(content)
