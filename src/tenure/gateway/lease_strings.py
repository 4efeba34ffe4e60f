"""Leases and sessions as texts that workers elsewhere pass back and cannot make up."""

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
    """One worker elsewhere, from its first acquire on: its secret, and whose bearer token it uses.

    The store has a digest of the two in the place of a worker's id. So whoever reads the store, or
    finds a lease in a log and has a token of his own, still holds nothing.
    """

    secret: bytes
    holder: str

    @classmethod
    def new(cls, holder: str) -> "RemoteSession":
        """A session that nobody knows yet."""
        return cls(secrets.token_bytes(_SECRET), holder)

    @classmethod
    def read(cls, text: str, holder: str) -> "RemoteSession":
        """The session of a text; InvalidValue if it is none."""
        return cls(_decoded(text, "ts_", _SECRET, "session"), holder)

    @property
    def worker(self) -> WorkerId:
        """The name that the store knows it by."""
        digest = hashlib.sha256(self.secret + self.holder.encode()).digest()
        return WorkerId(UUID(bytes=digest[:16]))

    @property
    def text(self) -> str:
        """What its worker passes back at each acquire."""
        return _encoded("ts_", self.secret)

    def lease(self, lease: Lease, *, attempt: int) -> str:
        """What its worker passes back with each word about this lease."""
        ttl = lease.ttl // _MILLISECOND
        parts = _PARTS.pack(lease.job_id, lease.token, ttl, attempt, self.secret)
        return _encoded("tl_", parts + _seal(parts))


def read_lease(text: str, holder: str) -> tuple[Lease, int]:
    """The lease of a text, and which attempt it is for; InvalidValue if it is none. Whether it is
    held, the store knows."""
    data = _decoded(text, "tl_", _PARTS.size + _SEAL, "lease")
    parts, seal = data[: _PARTS.size], data[_PARTS.size :]
    job_id, token, milliseconds, attempt, secret = _PARTS.unpack(parts)
    ttl = milliseconds * _MILLISECOND
    if seal != _seal(parts) or ttl > LONGEST_LEASE:
        raise _none("lease")
    worker = RemoteSession(secret, holder).worker
    return Lease(JobId(job_id), Token(token), worker, ttl), attempt


def _seal(parts: bytes) -> bytes:
    """Of the length and the attempt the store has no say: a text that was changed is none."""
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
        # What is left over in the last character must be nothing, or two texts were one lease.
        if len(data) == size and _encoded(prefix, data) == text:
            return data
    raise _none(what)


def _none(what: str) -> InvalidValue:
    return InvalidValue(f"that is no {what}; pass it back as the acquire gave it out")
