"""Access token grants, and the format of token secrets.

A secret consists of a prefix, 256 random bits and a checksum. Secret scanners find it by its prefix
and verify it by its checksum. The checksum also distinguishes a mistyped token from a revoked one
without a query. Only a digest is stored. A slow hash isn't needed, because 256 random bits can't be
guessed.
"""

import hashlib
import hmac
import re
import zlib
from collections.abc import Iterable, Mapping, Sequence

from tenure._model.access import Grant, Role, Scope
from tenure._model.queue import EVERY_QUEUE
from tenure._rules.payload import MAX_NAME
from tenure.errors import InvalidValue

_PATTERN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:/<>@-]*\*?|\*")


# What each role allows. A viewer can't see arguments, results or error texts.
ROLES: Mapping[Role, tuple[Scope, ...]] = {
    Role.VIEWER: (Scope.READ,),
    Role.OPERATOR: (Scope.READ, Scope.PAYLOAD_READ, Scope.OPERATE),
    Role.ADMIN: (Scope.ADMIN,),
}


def role_scopes(role: str) -> tuple[Scope, ...]:
    """Return a role's scopes, or raise InvalidValue."""
    try:
        return ROLES[Role(role)]
    except ValueError:
        raise InvalidValue(
            f"role must be one of {', '.join(Role)}, got {str(role)[:60]!r}"
        ) from None


def grant(
    scopes: Iterable[str], queues: Iterable[str], tasks: Iterable[str] = (EVERY_QUEUE,)
) -> Grant:
    """Return a grant for these scopes and patterns. Raise InvalidValue if any is invalid."""
    named = {_scope(word) for word in listed(scopes, "scopes")}
    wanted = tuple(scope for scope in Scope if scope in named)
    patterns, names = _patterns(queues, "queue"), _patterns(tasks, "task")
    if not wanted or not patterns:
        raise InvalidValue("a grant must have at least one scope and one queue, as in *")
    if not names:
        raise InvalidValue("a grant must have at least one task, as in *")
    return Grant(wanted, patterns, names)


def _patterns(given: Iterable[str], what: str) -> tuple[str, ...]:
    patterns = tuple(dict.fromkeys(listed(given, f"{what}s")))
    for pattern in patterns:
        if len(pattern) > MAX_NAME or not _PATTERN.fullmatch(pattern):
            raise InvalidValue(
                f"a {what} pattern must be a name, a prefix as in mail.*, or *, "
                f"got {pattern[:60]!r}"
            )
    return patterns


def allows(grant: Grant, scope: Scope, queue: str = EVERY_QUEUE) -> bool:
    """Return whether a grant includes a scope for a queue, or for all queues.

    `admin` includes all scopes.
    """
    if scope not in grant.scopes and Scope.ADMIN not in grant.scopes:
        return False
    return matches(grant.queues, queue)


def allows_task(grant: Grant, task: str) -> bool:
    """Return whether a grant may enqueue a task."""
    return matches(grant.tasks, task)


def matches(patterns: Iterable[str], name: str) -> bool:
    """Return whether one of the patterns matches a name.

    If the name is itself a pattern, one of the patterns must match everything that it matches.
    """
    return any(_matches(pattern, name) for pattern in patterns)


def like_patterns(patterns: Sequence[str] | None) -> list[str] | None:
    """Return a grant's patterns as LIKE patterns, or None for all queues."""
    if patterns is None or EVERY_QUEUE in patterns:
        return None
    return [
        re.sub(r"([\\%_])", r"\\\1", pattern.removesuffix("*")) + "%" * pattern.endswith("*")
        for pattern in patterns
    ]


def visible(grant: Grant, scope: Scope, queues: Iterable[str]) -> list[str]:
    """Return the queues whose contents a list may show."""
    return [queue for queue in queues if allows(grant, scope, queue)]


def covers(grant: Grant, other: Grant) -> bool:
    """Return whether a grant covers everything in another. No token can create a wider one."""
    return all(
        allows(grant, scope, queue) for scope in other.scopes for queue in other.queues
    ) and all(allows_task(grant, task) for task in other.tasks)


def _matches(pattern: str, queue: str) -> bool:
    """Return whether a pattern matches a queue.

    If `queue` is itself a pattern, all queues that it covers must match.
    """
    if pattern.endswith("*"):
        return queue.startswith(pattern[:-1])
    return queue == pattern


def listed(words: Iterable[str], name: str) -> list[str]:
    """Return the strings as a list. Raise InvalidValue for a single string."""
    if isinstance(words, str):
        raise InvalidValue(f"{name} must be a list, got the string {words!r}; write [{words!r}]")
    return list(words)


def _scope(word: str) -> Scope:
    try:
        return Scope(word)
    except ValueError:
        raise InvalidValue(
            f"scope must be one of {', '.join(Scope)}, got {str(word)[:60]!r}"
        ) from None


PREFIX = "tnr_"
# The prefixes for a dashboard session's id in the cookie, and for a code that signs a browser in
# once.
SESSION_PREFIX = "tns_"
CODE_PREFIX = "tnc_"
ENTROPY = 32
_DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_BODY = 43  # 62 ** 43 > 2 ** 256
_CHECKSUM = 6  # 62 ** 6 > 2 ** 32
_HINT = len(PREFIX) + 4
SHAPE = re.compile(rf"{PREFIX}[0-9A-Za-z]{{{_BODY + _CHECKSUM}}}")


def secret(entropy: bytes) -> str:
    """Return the secret made from these bytes, which must be cryptographically random."""
    if len(entropy) != ENTROPY:
        raise AssertionError(f"entropy must be {ENTROPY} bytes, got {len(entropy)}")
    text = PREFIX + _base62(int.from_bytes(entropy), _BODY)
    return text + _checksum(text)


def is_whole(text: str) -> bool:
    """Return whether the text is a secret with a valid checksum. If not, it was mistyped."""
    if not SHAPE.fullmatch(text):
        return False
    return _checksum(text[:-_CHECKSUM]) == text[-_CHECKSUM:]


def digest(text: str) -> str:
    """Return the digest to store instead of the secret: its SHA-256, in hexadecimal."""
    return hashlib.sha256(text.encode()).hexdigest()


def same(one: str, other: str) -> bool:
    return hmac.compare_digest(one.encode(), other.encode())


def hint(text: str) -> str:
    """Return the start of the secret for lists: enough to recognize it, not enough to use it."""
    return text[:_HINT]


def _checksum(text: str) -> str:
    return _base62(zlib.crc32(text.encode()), _CHECKSUM)


def _base62(number: int, length: int) -> str:
    digits = []
    for _ in range(length):
        number, digit = divmod(number, 62)
        digits.append(_DIGITS[digit])
    return "".join(reversed(digits))
