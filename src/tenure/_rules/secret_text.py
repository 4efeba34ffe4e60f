"""Find secrets in a text in one pass, by the name before a value or by the value's format.

One pattern finds every place where a secret may begin, and a function for each kind of secret finds
its end. The pass never looks at any part of the text twice, so the cost is linear in the length of
the text.
"""

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from tenure._rules.sealing import SEALED, SEALED_PREFIX
from tenure._rules.secret_names import PARTS, WORDS, SecretNames, words

if TYPE_CHECKING:
    from collections.abc import Iterator

HIDDEN = "<redacted>"
# Longer texts are truncated, because searching them would keep other requests waiting.
LONGEST = 64 * 1024
# A secret that was cut in half may not be recognized, so the end of a truncated text is dropped.
_DROPPED = 256
_LONGEST_NAME = 60
_SHORT = 16

# What can separate a name from its value: = : := => "name": \"name\": 'name', <name> %3D, and the
# rest of a pair such as "name": "password", "value": "…".
_BETWEEN = (
    r"(?:\\{0,3}[\"'])?[\])]{0,2}(?:"
    r"[ \t]{0,8}(?:=>|:=|==?|:(?!//))\s{0,8}"
    r"|(?<=[\"']),?[ \t]{0,4}(?:\\{0,3}[\"'])?(?:value|val)(?:\\{0,3}[\"'])?"
    r"[ \t]{0,4}[=:][ \t]{0,4}"
    r"|(?<=[\"']),[ \t]{0,4}(?=b?\\{0,3}[\"'\[({])"
    r"|(?:[ \t][^<>\n]{0,80})?>"
    r"|%3[adAD]"
    r")"
)
# Secrets with a recognizable format. Repetitions are bounded, so that no text takes quadratic time.
_FORMATS = (
    r"tnr_[0-9a-z]{49}",
    r"t[ls]_[a-z0-9_-]{20,1000}",
    r"eyj[a-z0-9_-]{8,4000}\.[a-z0-9_-]{8,8000}(?:\.[a-z0-9_-]{0,2000})?",
    r"a[ks]ia[0-9a-z]{16}(?![0-9a-z])",
    r"gh[pousr]_[a-z0-9]{20,255}|github_pat_[a-z0-9_]{20,255}|glpat-[a-z0-9_-]{20,255}",
    r"xox[abeoprs]-[a-z0-9-]{10,255}|xapp-[a-z0-9-]{10,255}",
    r"[srp]k_(?:live|test)_[a-z0-9]{10,255}|whsec_[a-z0-9+/=]{20,255}|sk-[a-z0-9_-]{20,255}",
    r"aiza[0-9a-z_-]{35}|ya29\.[0-9a-z_-]{20,255}|npm_[0-9a-z]{36}|pypi-[0-9a-z_-]{50,255}",
    r"sg\.[0-9a-z_-]{16,64}\.[0-9a-z_-]{16,64}|hv[sb]\.[0-9a-z_-]{20,255}|dop_v1_[0-9a-f]{64}",
)
_LONG_AND_MIXED = r"(?=[\w.~+/-]{8})(?=[a-z.~-]{0,200}[\d_+/=])"
_SCHEMES = "bearer|basic|digest|token|negotiate|ntlm|apikey|hmac|aws4-hmac-sha256"
_BEFORE = re.compile(r"[\w.-]{0,60}")
_BARE = re.compile(r"[^\s,;&)}\]\"'\\]+")
_IN_TAG = re.compile(r"[^<]*")
_WORD = re.compile(r"[^\s\"']+")
_HEADER = re.compile(r"[^\n\"'\\]*")
_SCHEME = re.compile(rf"(?:{_SCHEMES})[ \t]{{1,8}}(?=[^\s,])", re.IGNORECASE)
_PARAMETERS = re.compile(r"(?:digest|aws4-hmac-sha256|hmac)[ \t]", re.IGNORECASE)
_BRACKET = re.compile(r"[\[({]|[\])}]")
_RUN = re.compile(r"[^\s\"'<>]*")
_QUOTE = {'"': re.compile(r"\"|\\."), "'": re.compile(r"'|\\.")}
_LINE = re.compile(r"[^\n]*")
# How PostgreSQL's quotation of a whole row ends, and its quotation of the values of a key.
_ROW_END = re.compile(r"\)\.(?= \(sqlstate|$)", re.MULTILINE)
_KEY_END = re.compile(
    r"\)(?= (?:already exists|is not present|is still referenced|conflicts|is duplicated)|$)",
    re.MULTILINE,
)
_SEALED_TEXT = re.compile(rf"{re.escape(SEALED_PREFIX)}[A-Za-z0-9+/=]*")
_NAMES_IN_KEY = re.compile(r"[^\W\d][\w.-]*")


class SecretText:
    """Hides secrets in texts, by the built-in names and by declared ones."""

    def __init__(self, names: SecretNames) -> None:
        self._names = names
        declared = tuple(sorted(names.first_words))
        self._begins = _begins(declared)
        self._literals = _literals(declared)

    def hidden(self, text: str, known: "re.Pattern[str] | None" = None) -> str:
        """Return the text without secrets. `known` matches values that are secret anywhere."""
        cut = len(text) - LONGEST
        if cut > 0:
            text = text[:LONGEST]
        if SEALED_PREFIX in text:
            text = _SEALED_TEXT.sub(SEALED, text)
        if known is not None:
            text = known.sub(HIDDEN, text)
        if len(text) >= 4:
            text = _Pass(text, self._names).run(self._begins, self._literals)
        return f"{text[:-_DROPPED]}… ({cut + _DROPPED:,} more characters)" if cut > 0 else text


def pattern_of(values: Sequence[str]) -> "re.Pattern[str] | None":
    """Return a pattern that finds any of these values, the longest first."""
    if not values:
        return None
    return re.compile("|".join(map(re.escape, sorted(values, key=len, reverse=True))))


@lru_cache(maxsize=16)
def _begins(declared: Sequence[str]) -> "re.Pattern[str]":
    """Return a pattern for all places in a lowercase text where a secret may begin."""
    parts = [*(r"[-_. ]?".join(_split(part)) for part in PARTS), *WORDS, *map(re.escape, declared)]
    name = rf"(?P<whole>(?:{'|'.join(parts)})[\w.-]{{0,{_LONGEST_NAME}}}+)"
    return re.compile(
        "|".join(
            (
                rf"(?P<name>{name}{_BETWEEN})",
                r"(?P<option>(?<![\w-])--[a-z][\w-]{1,60}+[ \t]{1,4}(?=[^\s-]))",
                r"(?P<url>://)",
                rf"(?P<format>(?<![a-z0-9_-])(?:{'|'.join(_FORMATS)}))",
                r"(?P<pem>-----begin [a-z0-9 ]{0,40}private key(?: block)?-----)",
                r"(?P<row>failing row contains \()",
                r"(?P<key>\bkey \()",
                r"(?P<parameter>\$\d{1,5} = )",
                r"(?P<json>json data, line \d{1,9}: )",
                rf"(?P<scheme>\b(?:bearer|basic)[ \t]{{1,4}}{_LONG_AND_MIXED})",
                r"(?P<password>(?<!\S)-p[ \t]?(?=\S))",
                r"(?P<user>(?<!\S)(?:-u|--user)[ =]{0,2}[\"']?[^\s:\"'/]{1,64}:(?=[^\s/]))",
            )
        )
    )


@lru_cache(maxsize=16)
def _literals(declared: Sequence[str]) -> Sequence[str]:
    """Return the literals that the pattern's alternatives begin with, omitting redundant ones."""
    firsts = {
        *(_split(part)[0] for part in PARTS),
        *WORDS,
        *declared,
        *("--", "-p", "-u", "://", "$", "key (", "failing row", "json data", "basic"),
        *("tnr_", "tl_", "ts_", "eyj", "akia", "asia", "ghp_", "gho_", "ghu_", "ghs_", "ghr_"),
        *("github_pat_", "glpat-", "xox", "xapp-", "sk_", "rk_", "pk_", "whsec_", "sk-", "aiza"),
        *("ya29.", "npm_", "pypi-", "sg.", "hvs.", "hvb.", "dop_v1_"),
    }
    return [
        one for one in sorted(firsts) if not any(one != o and one.startswith(o) for o in firsts)
    ]


def _split(part: str) -> Sequence[str]:
    """Return the words in one part of a name. A separator may join them in the text."""
    for end in ("key", "url", "id", "string", "number", "code", "header", "card"):
        if part.endswith(end) and part != end:
            return (part.removesuffix(end), end)
    return (part,)


class _Pass:
    """One pass over one text."""

    def __init__(self, text: str, names: SecretNames) -> None:
        self.text = text
        # Positions must stay: only İ has a lowercase of another length.
        self.lower = text.replace("İ", "I").lower()
        self.names = names
        self.at = 0
        self.run_end = 0
        self.logs_in: bool | None = None

    def run(self, begins: "re.Pattern[str]", literals: Sequence[str]) -> str:
        """Return the text with secrets hidden."""
        shown: list[str] = []
        done = 0
        for begin in self._found(begins, literals):
            self.at = begin.end()
            kind = begin.lastgroup or ""
            found = _KINDS[kind](self, begin)
            if found is None:
                continue
            start, end = found
            # Text that is already redacted stays as it is, even if it was cut or shortened.
            value = self.text[start:end]
            self.at = max(end, start)
            if value and value != "…" and not HIDDEN.startswith(value):
                shown += (self.text[done:start], HIDDEN)
                done = end
        if not done:
            return self.text
        return "".join((*shown, self.text[done:]))

    def _found(
        self, begins: "re.Pattern[str]", literals: Sequence[str]
    ) -> "Iterator[re.Match[str]]":
        """Yield the places where a secret may begin, starting where the last one ended.

        In a long text, searching for each literal is many times faster than using the pattern.
        """
        lower = self.lower
        if len(lower) < _SHORT:
            while begin := begins.search(lower, self.at):
                yield begin
            return
        places: set[int] = set()
        for literal in literals:
            at = lower.find(literal)
            while at >= 0:
                places.add(at)
                at = lower.find(literal, at + 1)
        for at in sorted(places):
            if at >= self.at and (begin := begins.match(lower, at)):
                yield begin

    def name(self, begin: "re.Match[str]") -> tuple[int, int] | None:
        """Hide the value after a secret name."""
        left = self._left_of(begin.start())
        name = self.text[left : begin.end("whole")]
        is_tag = self.lower[begin.end() - 1] == ">" and self.lower[begin.end() - 2] != "="
        if is_tag and self.text[left - 1 : left] not in ("<", ":"):
            self.at = begin.end("whole")
            return None
        if not self.names.has(name):
            return None
        if is_tag:
            return self._span(_IN_TAG, begin.end())
        last = words(name)[-1:]
        return self._value(begin.end(), last[0] if last else "")

    def option(self, begin: "re.Match[str]") -> tuple[int, int] | None:
        """Hide the value after an option such as --password."""
        if not self.names.has(begin[0].strip(" \t-")):
            return None
        return self._value(begin.end(), "")

    def url(self, begin: "re.Match[str]") -> tuple[int, int] | None:
        """Hide everything between :// and the last @, because a password may contain an @."""
        if begin.end() <= self.run_end:
            return None
        _, self.run_end = self._span(_RUN, begin.end())
        last = self.text.rfind("@", begin.end(), self.run_end)
        return None if last < 0 else (begin.end(), last)

    def format(self, begin: "re.Match[str]") -> tuple[int, int]:
        """Hide a secret with a known format."""
        return begin.span()

    def pem(self, begin: "re.Match[str]") -> tuple[int, int]:
        """Hide a private key, up to the end of the text if the key isn't terminated."""
        end = self.lower.find("-----end ", begin.end())
        return begin.end(), len(self.text) if end < 0 else end

    def row(self, begin: "re.Match[str]") -> tuple[int, int]:
        """Hide a row that PostgreSQL quotes."""
        end = _ROW_END.search(self.lower, begin.end())
        return begin.end(), end.start() if end else len(self.text)

    def key(self, begin: "re.Match[str]") -> tuple[int, int] | None:
        """Hide the values of a key that PostgreSQL quotes, if one of its columns is secret."""
        between = self.lower.find(")=(", begin.end(), begin.end() + 300)
        if between < 0:
            return None
        columns = _NAMES_IN_KEY.findall(self.text, begin.end(), between)
        if not any(map(self.names.has, columns)):
            return None
        line = self._span(_LINE, between + 3)
        end = _KEY_END.search(self.lower, *line)
        return line[0], end.start() if end else line[1]

    def parameter(self, begin: "re.Match[str]") -> tuple[int, int] | None:
        """Hide a parameter of a statement that PostgreSQL quotes."""
        if not self.text.startswith("'", begin.end()):
            return None
        return self._quoted(begin.end())

    def line(self, begin: "re.Match[str]") -> tuple[int, int]:
        """Hide the rest of the line."""
        return self._span(_LINE, begin.end())

    def word(self, begin: "re.Match[str]") -> tuple[int, int]:
        """Hide the next word."""
        return self._value(begin.end(), "")

    def password(self, begin: "re.Match[str]") -> tuple[int, int] | None:
        """Hide the value of -p, but not a port or a path."""
        start, end = self._value(begin.end(), "")
        if self.logs_in is None:
            self.logs_in = bool(_LOGS_IN.search(self.lower))
        return (start, end) if self.logs_in and not self.text[start:end].isdigit() else None

    def _left_of(self, start: int) -> int:
        """Return the start of the name that contains a known part at this position."""
        before = _BEFORE.match(self.text[max(0, start - _LONGEST_NAME) : start][::-1])
        return start - (before.end() if before else 0)

    def _span(self, pattern: "re.Pattern[str]", at: int) -> tuple[int, int]:
        found = pattern.match(self.text, at)
        return (at, at) if found is None else found.span()

    def _value(self, at: int, name: str) -> tuple[int, int]:
        """Return the span of a value, which may be quoted, bracketed, bare, or in a header."""
        text = self.text
        if text.startswith(("b'", 'b"'), at):
            at += 1
        slashes = 0
        while slashes < 3 and text.startswith("\\", at + slashes):
            slashes += 1
        sign = text[at + slashes : at + slashes + 1]
        if sign in ('"', "'") and sign:
            if slashes:
                mark = text[at : at + slashes + 1]
                end = text.find(mark, at + len(mark))
                return at + len(mark), len(text) if end < 0 else end
            return self._quoted(at)
        if sign in ("[", "{", "(") and sign:
            # What adjoins the bracket belongs to the value, as it does without brackets.
            closed = self._closed(at)
            return at, max(self._span(_BARE, closed)[1], closed)
        if name in ("cookie", "cookies"):
            return self._span(_HEADER, at)
        if name in ("authorization", "authorisation", "authenticate", "auth"):
            if _PARAMETERS.match(text, at):
                return self._span(_HEADER, at)
            scheme = _SCHEME.match(text, at)
            if scheme:
                return at, max(self._span(_BARE, scheme.end())[1], scheme.end())
        return self._span(_BARE, at)

    def _quoted(self, at: int) -> tuple[int, int]:
        """Return the span inside the quotes, or the rest of the text if the quote is not closed."""
        sign = self.text[at]
        quote = _QUOTE[sign]
        end = at + 1
        while found := quote.search(self.text, end):
            if found[0] == sign:
                if not self.text.startswith(sign, found.end()) or found.end() == at + 2:
                    return at + 1, found.start()
                end = found.end() + 1
            else:
                end = found.end()
        return at + 1, len(self.text)

    def _closed(self, at: int) -> int:
        """Return where the bracket at this position closes, or the end of the text."""
        depth = 0
        for sign in _BRACKET.finditer(self.text, at):
            depth += 1 if sign[0] in "[({" else -1
            if not depth:
                return sign.end()
        return len(self.text)


_LOGS_IN = re.compile(r"\b(?:mysql|mariadb|sshpass|login|psql|mongo|redis-cli|curl|7z|zip|unzip)")
_KINDS: dict[str, Callable[[_Pass, "re.Match[str]"], tuple[int, int] | None]] = {
    "name": _Pass.name,
    "option": _Pass.option,
    "url": _Pass.url,
    "format": _Pass.format,
    "pem": _Pass.pem,
    "row": _Pass.row,
    "key": _Pass.key,
    "parameter": _Pass.parameter,
    "json": _Pass.line,
    "scheme": _Pass.word,
    "password": _Pass.password,
    "user": _Pass.word,
}
