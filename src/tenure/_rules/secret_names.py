"""Decide by a field's name whether its value is secret.

A built-in name matches anywhere in a field's name, however the words are joined: `apiKey`,
`X-API-KEY` and `stripe_api_key` all contain `api_key`. Short names, such as `pin`, match only as
whole words. Names from the `redact` setting are compared word by word.
"""

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

# Found anywhere in a name, without the signs between its words.
PARTS: tuple[str, ...] = (
    *("passw", "passphrase", "passcode", "pwd", "secret", "token", "bearer", "credential"),
    *("apikey", "accesskey", "privatekey", "signingkey", "encryptionkey", "masterkey", "sshkey"),
    *("sharedkey", "accountkey", "securitykey", "sessionkey", "sessionid", "authkey", "licensekey"),
    *("oauth", "authorization", "authorisation", "authheader", "cookie", "jwt", "csrf", "xsrf"),
    *("connectionstring", "connstr", "databaseurl", "dburl", "redisurl", "brokerurl"),
    *(
        "cardnumber",
        "creditcard",
        "onetimecode",
        "recoverycode",
        "verificationcode",
        "amzsignature",
    ),
)
# Found as whole words.
WORDS: tuple[str, ...] = (
    *("pass", "passwd", "pw", "pin", "otp", "totp", "cvv", "cvc", "ssn", "iban", "dsn", "auth"),
    *("session", "sid", "sessid", "creds", "cred", "psk", "sig"),
)
# Whole words that contain one of these and hold no secret.
_HARMLESS = re.compile(
    r"(?<![^_])(?:"
    r"(?:max|min|num|total|prompt|completion|input|output|cached|reasoning|used|remaining|context"
    r"|per)_?(?:new_?|output_?|completion_?|input_?)?tokens|(?:max|min|num)_?token"
    r"|tokens?_?(?:count|counts|limit|used|usage|length|size|type|ttl|per_[a-z]+|expir[a-z]+(?:_at"
    r"|_in)?)|tokeni[sz][a-z]*|secretar(?:y|ies)|cookie_?cutter|cookies?_?(?:enabled|consent|policy)"
    r"|passw(?:or)?ds?_?(?:length|policy|required|count|expir[a-z]+(?:_at|_in)?"
    r"|(?:changed|updated|reset)_?at)|secrets?_?(?:count|version)"
    r"|sessions?_(?:count|timeout|length|ttl|started|started_at|type)"
    r")(?![^_])"
)
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_WORD = re.compile(r"[^\W\d_]+|\d+")
_PART = re.compile("|".join(PARTS))
# Whether a name may contain a built-in one. Most don't, and need no further checks.
_HINT = re.compile(
    r"pass|pw|secret|token|bear|cred|key|auth|cookie|jwt|[cx]srf|conn|url|card|code"
    r"|pin|otp|cv[cv]|ssn|iban|dsn|sess|sid|psk|sig"
)
_WORD_SET = frozenset(WORDS)
Words = tuple[str, ...]


@lru_cache(maxsize=4096)
def words(name: str) -> Words:
    """Return a name's words in lowercase, however they are joined."""
    return tuple(word.casefold() for word in _WORD.findall(_CAMEL.sub(" ", name)))


@lru_cache(maxsize=4096)
def _is_built_in(name: str) -> bool:
    rest = _HARMLESS.sub("", "_".join(words(name)))
    return bool(_PART.search(rest.replace("_", ""))) or not _WORD_SET.isdisjoint(rest.split("_"))


class SecretNames:
    """The built-in names and these additional ones, which may be paths of names joined by dots."""

    def __init__(self, names: Iterable[str] = ()) -> None:
        self.declared: tuple[str, ...] = tuple(names)
        chains = [tuple(map(words, name.split("."))) for name in self.declared]
        # Indexed by the first word of the last name, so that a field is compared with only a few of
        # the declared names.
        self._single: dict[str, list[Words]] = {}
        self._longer: dict[str, list[tuple[Words, ...]]] = {}
        for chain in chains:
            if len(chain) == 1:
                self._single.setdefault(chain[0][0], []).append(chain[0])
            else:
                self._longer.setdefault(chain[-1][0], []).append(chain)

    @property
    def first_words(self) -> Iterable[str]:
        """The first words of declared names, without those of paths."""
        return self._single

    def has(self, name: str) -> bool:
        """Return whether a field with this name is secret, regardless of where it is nested."""
        if len(name) > 200:
            name = name[:200]
        if _HINT.search(name.lower()) and _is_built_in(name):
            return True
        return bool(self._single) and _any_of(words(name), self._single)

    def has_path(self, *names: str) -> bool:
        """Return whether the field at this path is secret."""
        if self.has(names[-1]):
            return True
        if not self._longer:
            return False
        return any(
            _ends(names, chain) for word in words(names[-1]) for chain in self._longer.get(word, ())
        )


def _any_of(found: Words, wanted: dict[str, list[Words]]) -> bool:
    return any(
        found[at : at + len(some)] == some
        for at, word in enumerate(found)
        for some in wanted.get(word, ())
    )


def _ends(names: Sequence[str], chain: Sequence[Words]) -> bool:
    """Return whether the last names match the chain, word by word."""
    last = names[-len(chain) :]
    return len(last) == len(chain) and all(map(_has, map(words, last), chain))


def _has(found: Words, some: Words) -> bool:
    starts = range(len(found) - len(some) + 1)
    return any(found[at : at + len(some)] == some for at in starts)
