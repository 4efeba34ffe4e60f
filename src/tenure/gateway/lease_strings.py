"""Leases and sessions as strings that remote workers send back and can't forge."""

import base64
import binascii
import hashlib
import re
import secrets
import struct
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from tenure._model.ids import JobId, Token, WorkerId
from tenure._model.lease import Lease
from tenure.config import LONGEST_LEASE
from tenure.errors import InvalidValue

_SECRET = 16
_PARTS = struct.Struct(f">qqIH{_SECRET}s")
_SEAL = 8
_MILLISECOND = timedelta(milliseconds=1)
_ALPHABET = re.compile(r"[A-Za-z0-9_-]*")


@dataclass(frozen=True, slots=True)
class RemoteSession:
    """A remote worker's secret and the owner of its access token.

    The store uses a digest of both as the worker's id.
    """

    secret: bytes
    holder: str

    @classmethod
    def new(cls, holder: str) -> "RemoteSession":
        return cls(secrets.token_bytes(_SECRET), holder)

    @classmethod
    def read(cls, text: str, holder: str) -> "RemoteSession":
        """Parse a session string; raise InvalidValue if it isn't one."""
        return cls(_decoded(text, "ts_", _SECRET, "session"), holder)

    @property
    def worker(self) -> WorkerId:
        digest = hashlib.sha256(self.secret + self.holder.encode()).digest()
        return WorkerId(UUID(bytes=digest[:16]))

    @property
    def text(self) -> str:
        """Return the string that the worker sends back with each acquire."""
        return _encoded("ts_", self.secret)

    def lease(self, lease: Lease, *, attempt: int) -> str:
        """Return the string that the worker sends back with each request for this lease."""
        ttl = lease.ttl // _MILLISECOND
        parts = _PARTS.pack(lease.job_id, lease.token, ttl, attempt, self.secret)
        return _encoded("tl_", parts + _seal(parts))


def read_lease(text: str, holder: str) -> tuple[Lease, int]:
    """Parse a lease string into a lease and its attempt. Raise InvalidValue if it isn't valid."""
    data = _decoded(text, "tl_", _PARTS.size + _SEAL, "lease")
    parts, seal = data[: _PARTS.size], data[_PARTS.size :]
    job_id, token, milliseconds, attempt, secret = _PARTS.unpack(parts)
    ttl = milliseconds * _MILLISECOND
    if seal != _seal(parts) or ttl > LONGEST_LEASE:
        raise _invalid("lease")
    worker = RemoteSession(secret, holder).worker
    return Lease(JobId(job_id), Token(token), worker, ttl), attempt


def _seal(parts: bytes) -> bytes:
    """Return a checksum, because the store can't detect an altered length or attempt."""
    return hashlib.sha256(parts).digest()[:_SEAL]


def _encoded(prefix: str, data: bytes) -> str:
    return prefix + base64.urlsafe_b64encode(data).decode().rstrip("=")


def _decoded(text: str, prefix: str, size: int, what: str) -> bytes:
    body = text.removeprefix(prefix)
    if body != text and _ALPHABET.fullmatch(body):
        try:
            data = base64.urlsafe_b64decode(body + "=" * (-len(body) % 4))
        except binascii.Error:
            data = b""
        # Unused bits of the last character must be zero. Otherwise, two strings would mean the same
        # lease.
        if len(data) == size and _encoded(prefix, data) == text:
            return data
    raise _invalid(what)


def _invalid(what: str) -> InvalidValue:
    return InvalidValue(f"{what} is not valid; pass it back exactly as acquire returned it")
