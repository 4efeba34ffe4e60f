"""What must not be shown: the one place where values leave their fields before an edge shows them.

A field is hidden by its name: keys inside each other, joined by dots (`password`,
`customer.iban`); lists between them do not count. A key is compared by its words, so that
`apiKey`, `API-KEY` and `stripe_api_key` are all an `api_key`. In texts, secrets are found by the
same names before a `=` or `:`, by the forms that they have, and by what the job's own hidden
fields hold. A field is hidden for sure, a text as well as can be.
"""

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

from tenure._model.attempt import AttemptRow
from tenure._model.ids import Json
from tenure._model.job import JobRow
from tenure._model.schedule import ScheduleRow
from tenure._rules import access
from tenure._rules.payload import MAX_DEPTH
from tenure.errors import Error, InvalidValue

HIDDEN = "<redacted>"
BUILT_IN = (
    *("password", "passwords", "passwd", "pwd", "passphrase", "secret", "secrets", "token"),
    *("authorization", "cookie", "cookies", "credential", "credentials"),
    *("api_key", "apikey", "access_key", "private_key"),
)
MOST_NAMES = 200
# A shorter value would be found in every other word.
_SHORTEST = 4
_MOST_VALUES = 1000
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_WORD = re.compile(r"[^\W\d_]+|\d+")
_RUN = re.compile(r"[^\s\"'<>]+")
_BEFORE = re.compile(r"(?<![\w.-])([^\W\d_][\w.-]{0,99})[\"']?\s{0,8}[=:]\s{0,8}")
_BEHIND = re.compile(
    r"\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'"
    r"|(?:(?:bearer|basic|digest)\s{1,8})?[^\s,;&)}\]\"']+",
    re.IGNORECASE | re.DOTALL,
)
# A lease or a session of a worker elsewhere.
_HELD = re.compile(r"\bt[ls]_[A-Za-z0-9_-]{20,}")
# How PostgreSQL quotes what it refuses: a whole row, or the JSON that it was reading.
_ROW = "Failing row contains ("
_ROW_END = re.compile(r"\)\.(?= \(SQLSTATE|$)", re.MULTILINE)
_LONGEST_ROW = 4000
_JSON_LINE = re.compile(r"(?<=JSON data, line \d: )[^\n]*")
_Words = tuple[str, ...]


def check_names(names: Json) -> None:
    """Refuse what is no list of names of fields."""
    if not isinstance(names, list) or not all(_is_name(name) for name in names):
        raise InvalidValue(
            "redact is a list of names of fields, keys inside each other joined by dots; write it "
            'like ["ssn", "customer.iban"]'
        )
    if len(names) > MOST_NAMES:
        raise InvalidValue(f"redact names {len(names):,} fields; {MOST_NAMES} is the most")


class Redactor:
    """Hides the fields of these names, beside those that are built in. What it is given is left as
    it is; what it gives can be shown."""

    def __init__(self, names: Iterable[str] = ()) -> None:
        chains = [tuple(map(_words, name.split("."))) for name in (*BUILT_IN, *names)]
        self._single = [chain[0] for chain in chains if len(chain) == 1]
        self._longer = [chain for chain in chains if len(chain) > 1]
        # The same few keys come again and again.
        self._named = lru_cache(maxsize=4096)(self._is_named)

    def job(self, job: JobRow) -> JobRow:
        """A job without what must not be shown."""
        known = self._known(job)
        return replace(
            job,
            args=self.value(job.args, known),
            result=self.value(job.result, known),
            cursor=self.value(job.cursor, known),
            progress=self.value(job.progress, known),
            meta=self.value(job.meta, known),
        )

    def attempt(self, attempt: AttemptRow, *, of: JobRow | None = None) -> AttemptRow:
        """An attempt without what must not be shown. `of` is its job as the store has it: what its
        hidden fields hold is hidden in the attempt's texts too."""
        known = () if of is None else self._known(of)
        return replace(
            attempt,
            error_message=self.value(attempt.error_message, known),
            error_trace=self.value(attempt.error_trace, known),
            error_signature=self.value(attempt.error_signature, known),
            log=self.value(attempt.log, known),
            refused_result=self.value(attempt.refused_result, known),
        )

    def error(self, error: Error, *, of: JobRow, whole: bool = False) -> Error:
        """An error without what must not be shown of its job; `whole`: nothing of its arguments."""
        known = self._known(of)
        if whole:
            known = (*self._found(of.args, hidden=True), *known)
        return Error(error.type, self.text(error.message, known), self.text(error.trace, known))

    def items(self, items: Mapping[str, Json]) -> dict[str, Json]:
        """A job's items; their keys are the job's own, and name no field."""
        return {key: self.value(data) for key, data in items.items()}

    def schedule(self, schedule: ScheduleRow) -> ScheduleRow:
        """A schedule without what must not be shown of its job."""
        job = schedule.job
        shown = {"args": self.value(job.args), "meta": self.value(job.meta)}
        return replace(schedule, job=replace(job, **shown))

    def value(self, value: Json, known: Sequence[str] = ()) -> Json:
        """A value without its hidden fields, its texts without what is hidden in texts; without
        anything that lies too deep to look at."""
        return self._value(value, (), known, 0)

    def text(self, text: str, known: Sequence[str] = ()) -> str:
        """A text without these known values, access tokens, leases, users and passwords of URLs,
        rows that PostgreSQL quotes, and what stands behind a hidden name."""
        for secret in known:
            text = text.replace(secret, HIDDEN)
        text = _HELD.sub(HIDDEN, access.SHAPE.sub(HIDDEN, text))
        text = _JSON_LINE.sub(HIDDEN, _without_rows(text))
        if "://" in text:
            text = _RUN.sub(_without_userinfo, text)
        return "".join(self._pairs(text))

    def values(self, value: Json) -> tuple[str, ...]:
        """The texts and numbers that hidden fields hold, the longest first."""
        return self._found(value, hidden=False)

    def hides(self, *keys: str) -> bool:
        """Whether the field that these keys lead to is hidden."""
        return self._named(keys[-1]) or any(_ends(keys, chain) for chain in self._longer)

    def _is_named(self, key: str) -> bool:
        words = _words(key)
        return any(_has(words, some) for some in self._single)

    def _found(self, value: Json, *, hidden: bool) -> tuple[str, ...]:
        found: set[str] = set()
        self._collect(value, (), found, hidden=hidden, depth=0)
        return tuple(sorted(found, key=len, reverse=True)[:_MOST_VALUES])

    def _known(self, job: JobRow) -> tuple[str, ...]:
        return self.values([job.args, job.cursor, job.meta])

    def _value(self, value: Json, keys: _Words, known: Sequence[str], depth: int) -> Json:
        if depth > MAX_DEPTH:
            return HIDDEN
        match value:
            case Mapping():
                return {
                    key: HIDDEN
                    if item is not None and self.hides(*keys, str(key))
                    else self._value(item, (*keys, str(key)), known, depth + 1)
                    for key, item in value.items()
                }
            case list() | tuple():
                return [self._value(item, keys, known, depth + 1) for item in value]
            case str():
                return self.text(value, known)
            case _:
                return value

    def _collect(
        self, value: Json, keys: _Words, found: set[str], *, hidden: bool, depth: int
    ) -> None:
        if depth > MAX_DEPTH or value is None or isinstance(value, bool):
            return
        match value:
            case Mapping():
                for key, item in value.items():
                    inner = (*keys, str(key))
                    inside = hidden or self.hides(*inner)
                    self._collect(item, inner, found, hidden=inside, depth=depth + 1)
            case list() | tuple():
                for item in value:
                    self._collect(item, keys, found, hidden=hidden, depth=depth + 1)
            case _:
                if hidden and len(str(value)) >= _SHORTEST:
                    found.add(str(value))

    def _pairs(self, text: str) -> Iterator[str]:
        """The text in parts, without the values behind hidden names."""
        shown = at = 0
        while name := _BEFORE.search(text, at):
            at = name.end()
            value = _BEHIND.match(text, at) if self.hides(name[1]) else None
            if value:
                quote = value[0][0] if value[0][0] in "\"'" else ""
                yield text[shown:at] + quote + HIDDEN + quote
                shown = at = value.end()
        yield text[shown:]


def _is_name(name: Json) -> bool:
    return isinstance(name, str) and len(name) <= 200 and all(map(_words, name.split(".")))


@lru_cache(maxsize=4096)
def _words(key: str) -> _Words:
    """A key's words, in small letters, however they are joined."""
    return tuple(word.casefold() for word in _WORD.findall(_CAMEL.sub(" ", key)))


def _ends(keys: Sequence[str], chain: Sequence[_Words]) -> bool:
    """Whether the last keys are the chain's: each has the words among its own."""
    last = keys[-len(chain) :]
    return len(last) == len(chain) and all(map(_has, map(_words, last), chain))


def _has(words: _Words, some: _Words) -> bool:
    starts = range(len(words) - len(some) + 1)
    return any(words[at : at + len(some)] == some for at in starts)


def _without_rows(text: str) -> str:
    """Each row hidden up to the first end behind it. Ends are looked for once: a text may begin any
    number of rows that have none."""
    if _ROW not in text:
        return text
    ends = [end.start() for end in _ROW_END.finditer(text)]
    shown: list[str] = []
    at = 0
    while (found := text.find(_ROW, at)) >= 0:
        start = found + len(_ROW)
        shown.append(text[at:start])
        nth = bisect_left(ends, start)
        at = start
        if nth < len(ends) and ends[nth] - start <= _LONGEST_ROW:
            shown.append(HIDDEN)
            at = ends[nth]
    return "".join([*shown, text[at:]])


def _without_userinfo(found: re.Match[str]) -> str:
    """A run of signs without what stands between :// and the last @: a password may have an @."""
    scheme, is_url, rest = found[0].partition("://")
    _, has_user, place = rest.rpartition("@")
    return f"{scheme}://{HIDDEN}@{place}" if is_url and has_user else found[0]
