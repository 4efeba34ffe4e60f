"""Opaque page tokens, valid only for the access token and the list that they were created for.

A token contains the position where the list continues, which may be a row that the caller isn't
allowed to see. The token is therefore encrypted, and authenticated together with the list's filter.
"""

import hashlib
import hmac
import json
from base64 import urlsafe_b64decode, urlsafe_b64encode

from tenure.server.auth import Caller
from tenure.server.problems import ProblemError

_SEAL = 16


def seal(caller: Caller, place: str | None, *of: object) -> str | None:
    """Return the page token for a position in the list that `of` identifies, or None at its end."""
    if place is None:
        return None
    data = place.encode()
    mac = _mac(caller, data, of)
    return _text(mac + _cipher(caller, mac, data))


def unseal(caller: Caller, token: str | None, *of: object) -> str | None:
    """Return the position that a page token contains, or fail with `invalid`."""
    if token is None:
        return None
    try:
        sealed = urlsafe_b64decode(token + "=" * (-len(token) % 4))
    except ValueError:
        sealed = b""
    if _text(sealed) != token:
        sealed = b""  # Decoding ignores some characters. A token has one form.
    mac, data = sealed[:_SEAL], sealed[_SEAL:]
    data = _cipher(caller, mac, data)
    if not hmac.compare_digest(mac, _mac(caller, data, of)):
        raise ProblemError(
            "invalid",
            "page_token must be the `next_page_token` of the last page, with the same filter and "
            "access token",
        )
    return data.decode()


def _text(sealed: bytes) -> str:
    return urlsafe_b64encode(sealed).decode().rstrip("=")


def _mac(caller: Caller, data: bytes, of: tuple[object, ...]) -> bytes:
    context = json.dumps([caller.id, *map(str, of)]).encode()
    message = len(context).to_bytes(4) + context + data
    return hmac.digest(caller.page_key, b"page" + message, "sha256")[:_SEAL]


def _cipher(caller: Caller, mac: bytes, data: bytes) -> bytes:
    """Encrypt or decrypt. The MAC is also the nonce, so equal tokens contain equal positions."""
    key = hmac.digest(caller.page_key, b"stream" + mac, "sha256")
    stream = hashlib.shake_256(key).digest(len(data))
    return bytes(one ^ other for one, other in zip(data, stream, strict=True))
