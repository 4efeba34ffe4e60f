"""Forged lease strings: made from a true one in every way that came to mind."""

from __future__ import annotations

import base64
import secrets
import string
from typing import TYPE_CHECKING, Any

from tenure._model.ids import JobId, Token
from tenure.gateway import RemoteSession
from tenure.gateway.lease_strings import read_lease

if TYPE_CHECKING:
    from collections.abc import Iterator
    from random import Random

    import httpx

# Every verb of a lease, and what is said beside it.
VERBS: dict[str, dict[str, Any]] = {
    "renew": {},
    "progress": {"items": {"forged": 1}, "done": 1},
    "complete": {"result": "forged"},
    "fail": {"error": {"type": "Forged"}, "retry": "never"},
    "release": {},
}
# Every answer to a forged text is the same.
_REFUSALS = {409: "lease-lost", 422: "invalid"}
_PREFIX = "tl_"
_SECRET = 16
_SEAL = 8


def forgeries(lease: str, other: str, holder: str, rng: Random) -> Iterator[tuple[str, str]]:
    """Kinds and texts; `other` is the true lease of another job, by the same holder."""
    data = _data(lease)
    for bit in range(8 * len(data)):
        flipped = bytearray(data)
        flipped[bit // 8] ^= 1 << bit % 8
        yield "one bit changed", _text(bytes(flipped))
    for place in range(len(lease)):
        letter = rng.choice([c for c in string.ascii_letters + string.digits if c != lease[place]])
        yield "one character changed", lease[:place] + letter + lease[place + 1 :]
        yield "cut short", lease[:place]
    for text in _re_encoded(lease, data):
        yield "encoded otherwise", text
    for text in _remade(lease, other, holder, rng):
        # Fences of new jobs are alike: a random hit was given out.
        if text not in (lease, other):
            yield "made again for another job, fence or session", text


def attempt(caller: httpx.Client, verb: str, lease: str) -> str | None:
    """Say something about a lease; None if that was refused, else what the server made of it."""
    request = {"leases": [lease]} if verb == "renew" else {"lease": lease} | VERBS[verb]
    answer = caller.post(f"/v1/leases:{verb}", json=request)
    document = answer.json()
    if _REFUSALS.get(answer.status_code) == document.get("code", ""):
        return None
    if answer.is_success and verb == "renew" and document["leases"][0]["answer"] == "lost":
        return None
    return f"{answer.status_code} {answer.text[:200]}"


def _re_encoded(lease: str, data: bytes) -> Iterator[str]:
    body = lease.removeprefix(_PREFIX)
    padding = "=" * (-len(body) % 4) or "===="
    yield from (lease + padding, lease + "A", lease + "\n", f" {lease}", lease + "\0", lease * 2)
    yield from (body, f"TL_{body}", f"ts_{body}", f"{_PREFIX}{_PREFIX}{body}", body.swapcase())
    yield _PREFIX + base64.b32encode(data).decode()
    yield _PREFIX + data.hex()
    yield _PREFIX + base64.b85encode(data).decode()
    # The same bytes by decoders that look away.
    yield lease[:9] + "\n" + lease[9:]
    yield lease[:9] + "!" + lease[9:]
    alphabet = string.ascii_uppercase + string.ascii_lowercase + string.digits + "-_"
    last = alphabet.index(lease[-1])
    spare = {0: 0, 1: 4, 2: 2}[len(data) % 3]
    yield from (lease[:-1] + alphabet[last ^ more] for more in range(1, 1 << spare))
    standard = base64.b64encode(data).decode().rstrip("=")
    if standard != body:
        yield _PREFIX + standard


def _remade(lease: str, other: str, holder: str, rng: Random) -> Iterator[str]:
    """By an attacker who knows how they are made, and has an access token."""
    held, attempt = read_lease(lease, holder)
    others, _ = read_lease(other, holder)
    mine = RemoteSession(_data(lease)[-_SECRET - _SEAL : -_SEAL], holder)

    def text(session: RemoteSession, job: int, token: int) -> str:
        forged = held._replace(job_id=JobId(job), token=Token(token))
        return session.lease(forged, attempt=attempt)

    for step in (-2, -1, 1, 2, 1 << 40, -(1 << 40)):
        yield text(mine, held.job_id, held.token + step)
        yield text(mine, held.job_id + step, held.token)
    for token in (0, -1, 2**63 - 1, -(2**63)):
        yield text(mine, held.job_id, token)
        yield text(mine, token, held.token)
    yield text(mine, others.job_id, held.token + 1)
    for _ in range(20):
        yield text(RemoteSession(secrets.token_bytes(_SECRET), holder), held.job_id, held.token)
        yield text(mine, held.job_id, rng.randrange(2**62))
    for secret in (bytes(_SECRET), held.claimed_by.bytes, b"\xff" * _SECRET):
        yield text(RemoteSession(secret, holder), held.job_id, held.token)


def _data(lease: str) -> bytes:
    body = lease.removeprefix(_PREFIX)
    return base64.urlsafe_b64decode(body + "=" * (-len(body) % 4))


def _text(data: bytes) -> str:
    return _PREFIX + base64.urlsafe_b64encode(data).decode().rstrip("=")
