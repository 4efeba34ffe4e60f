"""The form of an access token's secret: a prefix, 256 bits, a checksum.

Secret scanners find it by its prefix and know it by its checksum; what was mistyped is told from
what was revoked without a question to the database. Only its digest is ever stored: of 256 bits
by chance nothing can be guessed back, so that no slow hash is needed.
"""

import hashlib
import hmac
import re
import zlib

PREFIX = "tnr_"
ENTROPY = 32
_DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_BODY = 43  # 62 ** 43 > 2 ** 256
_CHECKSUM = 6  # 62 ** 6 > 2 ** 32
_HINT = len(PREFIX) + 4
SHAPE = re.compile(rf"{PREFIX}[0-9A-Za-z]{{{_BODY + _CHECKSUM}}}")


def secret(entropy: bytes) -> str:
    """The secret made of these bytes, which must come from a source for secrets."""
    if len(entropy) != ENTROPY:
        raise AssertionError(f"a secret is made of {ENTROPY} bytes, not {len(entropy)}")
    text = PREFIX + _base62(int.from_bytes(entropy), _BODY)
    return text + _checksum(text)


def is_whole(text: str) -> bool:
    """Whether the text has the form of a secret and its checksum fits; else it was mistyped."""
    if not SHAPE.fullmatch(text):
        return False
    return _checksum(text[:-_CHECKSUM]) == text[-_CHECKSUM:]


def digest(text: str) -> str:
    """What is stored in the secret's place: its SHA-256, in hexadecimal."""
    return hashlib.sha256(text.encode()).hexdigest()


def same(one: str, other: str) -> bool:
    """Whether two digests are the same, in a time that does not tell how far they are."""
    return hmac.compare_digest(one.encode(), other.encode())


def hint(text: str) -> str:
    """How the secret begins, for lists: enough to know it again, too little to use."""
    return text[:_HINT]


def _checksum(text: str) -> str:
    return _base62(zlib.crc32(text.encode()), _CHECKSUM)


def _base62(number: int, length: int) -> str:
    digits = []
    for _ in range(length):
        number, digit = divmod(number, 62)
        digits.append(_DIGITS[digit])
    return "".join(reversed(digits))
