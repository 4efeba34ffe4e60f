"""What a grant allows, and the format of access tokens.

The form of an access token's secret: a prefix, 256 bits, a checksum.

Secret scanners find it by its prefix and know it by its checksum; what was mistyped is told from
what was revoked without a question to the database. Only its digest is ever stored: of 256 bits
by chance nothing can be guessed back, so that no slow hash is needed.
"""

import hashlib
import hmac
import re
import zlib
from collections.abc import Iterable

from tenure._model.access import Grant, Scope
from tenure._model.queue import EVERY_QUEUE
from tenure._rules.payload import MAX_NAME
from tenure.errors import InvalidValue

_PATTERN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:/<>@-]*\*?|\*")


def grant(scopes: Iterable[str], queues: Iterable[str]) -> Grant:
    """The grant that these words make; InvalidValue for one that is none, or for no words."""
    said = {_scope(word) for word in _several(scopes, "scopes")}
    wanted = tuple(scope for scope in Scope if scope in said)
    patterns = tuple(dict.fromkeys(_several(queues, "queues")))
    for pattern in patterns:
        if len(pattern) > MAX_NAME or not _PATTERN.fullmatch(pattern):
            raise InvalidValue(
                f"{pattern[:60]!r} is no pattern of queues; write a queue's name, the beginning of "
                "names with a * behind it as in mail.*, or * for every queue"
            )
    if not wanted or not patterns:
        raise InvalidValue("a grant of nothing; name at least one scope and one queue, as in *")
    return Grant(wanted, patterns)


def allows(grant: Grant, scope: Scope, queue: str = EVERY_QUEUE) -> bool:
    """Whether this may be done in this queue; without a queue, to the whole installation.

    `admin` allows what every other scope does; no other scope allows more than itself.
    """
    if scope not in grant.scopes and Scope.ADMIN not in grant.scopes:
        return False
    return any(_matches(pattern, queue) for pattern in grant.queues)


def visible(grant: Grant, scope: Scope, queues: Iterable[str]) -> list[str]:
    """The queues among these of which a list may show something, in their order."""
    return [queue for queue in queues if allows(grant, scope, queue)]


def covers(grant: Grant, other: Grant) -> bool:
    """Whether nothing is allowed by the other grant that this one does not allow: nobody gives
    away more than they have."""
    return all(allows(grant, scope, queue) for scope in other.scopes for queue in other.queues)


def _matches(pattern: str, queue: str) -> bool:
    """A pattern as the queue is matched as one: all that it matches begins so too."""
    if pattern.endswith("*"):
        return queue.startswith(pattern[:-1])
    return queue == pattern


def _several(words: Iterable[str], what: str) -> list[str]:
    if isinstance(words, str):
        raise InvalidValue(f"{what} are several: write {what}=[{words!r}]")
    return list(words)


def _scope(word: str) -> Scope:
    try:
        return Scope(word)
    except ValueError:
        raise InvalidValue(
            f"there is no scope {str(word)[:60]!r}; there are: {', '.join(Scope)}"
        ) from None


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
