"""Decide which selectors identify a person's jobs, and what to keep of an erasure request.

The values in a request are personal data. An operation and its audit row therefore store only a
masked selector and a salted digest, so that later requests can be compared with the digest.
"""

import hashlib
import hmac
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace

from tenure._model.audit import By
from tenure._model.ids import Json
from tenure._model.operation import Filter
from tenure._model.selector import Selector
from tenure._rules import operations, selector_syntax
from tenure._rules.selector_syntax import MASK
from tenure.errors import InvalidValue

SALT = 16
_ROUNDS = 20_000
_ALGORITHM = "pbkdf2-sha256"
# A selector must identify a person by one of these fields. The queue and task can narrow it down.
_PERSON = ("tag", "key", "id", "args")
_ALLOWED = (*_PERSON, "queue", "task")


def check(selector: Selector, by: By) -> None:
    """Refuse a selector that doesn't identify a person.

    Also refuse a reason that is missing or that contains a selected value.
    """
    other = [
        one.name
        for one in fields(Selector)
        if one.name not in _ALLOWED and getattr(selector, one.name)
    ]
    if other:
        raise InvalidValue(
            f"an erasure covers jobs in every state, so its selector must not have {other[0]}:; "
            "omit it"
        )
    if not any(getattr(selector, name) for name in _PERSON):
        raise InvalidValue(
            "an erasure's selector must have a tag, a key, an argument or an id, as in "
            "tag:customer:7"
        )
    if not (by.reason or "").strip():
        raise InvalidValue(
            "an erasure must have a reason, for the audit log; give one, such as a ticket's number"
        )
    for value in _values(selector):
        if re.search(rf"(?<!\w){re.escape(value)}(?!\w)", by.reason or ""):
            raise InvalidValue(
                "the reason of an erasure must not contain a selected value, because it is kept; "
                "name a ticket instead"
            )


def _values(selector: Selector) -> Iterator[str]:
    yield from selector.tag
    yield from selector.key
    for argument in selector.args:
        yield from argument.values


def names_schedules(selector: Selector) -> bool:
    """Return whether schedules can match. They have tags and arguments, but no keys or job ids."""
    return bool(selector.tag or selector.args) and not selector.key and not selector.id


def stored_filter(selector: Selector) -> Filter:
    """Return the filter to store in the operation's row, with tags, keys and arguments masked."""
    if selector.id:
        return Filter(ids=selector.id)
    hidden = replace(selector_syntax.masked(selector), tag=selector.tag and (MASK,))
    return operations.selected(hidden)


def digest(selector: Selector, salt: bytes) -> str:
    """Return the selector's salted digest. The hash is slow, so guessing the values is slow too."""
    text = selector_syntax.text(selector).encode()
    value = hashlib.pbkdf2_hmac("sha256", text, salt, _ROUNDS)
    return f"{_ALGORITHM}:{_ROUNDS}:{salt.hex()}:{value.hex()}"


def is_digest_of(stored: str, selector: Selector) -> bool:
    """Return whether a stored digest is that of this selector."""
    salt = bytes.fromhex(stored.split(":")[2])
    return hmac.compare_digest(stored, digest(selector, salt))


def masked_filter(
    stored: Mapping[str, Json], tags: Sequence[str], schedules: Sequence[str]
) -> Mapping[str, Json] | None:
    """Mask these tags and schedules in an older operation's filter.

    Return None if the filter contains none of them.
    """
    if stored.get("schedule") in schedules:
        return {**stored, "schedule": MASK}
    if "selector" not in stored:
        return None
    selector = selector_syntax.parse(stored["selector"])
    kept = tuple(dict.fromkeys(MASK if tag in tags else tag for tag in selector.tag))
    if kept == selector.tag:
        return None
    return {**stored, "selector": selector_syntax.text(replace(selector, tag=kept))}
