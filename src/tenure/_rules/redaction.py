"""Redaction: hide secrets before a page, a route or a command shows them.

A field is hidden by its name (`secret_names`) or by a path of names, such as `customer.phone`. A
path ignores lists in between. Secrets in text are found by the same names, by their format
(`secret_text`), and by the values of the job's own hidden fields. Fields are always hidden. Text is
redacted on a best-effort basis. The cost is linear in the length of the value.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

from tenure._model.attempt import AttemptRow
from tenure._model.audit import AuditRow
from tenure._model.ids import Json
from tenure._model.job import JobRow
from tenure._model.schedule import ScheduleRow
from tenure._model.stats import FailedGroup
from tenure._rules import sanitize, secret_names
from tenure._rules.payload import MAX_DEPTH
from tenure._rules.sealing import SEALED, SEALED_KEY
from tenure._rules.secret_names import SecretNames
from tenure._rules.secret_text import HIDDEN, SecretText, pattern_of
from tenure.errors import Error, InvalidValue

__all__ = ["HIDDEN", "MOST_NAMES", "Redactor", "check_names", "first_mark"]

MOST_NAMES = 200
# A shorter value would match parts of ordinary words.
_SHORTEST = 4
_MOST_VALUES = 1000
# How many known values are replaced in one job's texts, and how much work the search may take.
_MOST_FOUND = 200
_MOST_LOOKED_AT = 64 * 1024 * 1024
# The fields of a pair that names a field in one value and gives its content in another: {"name":
# "password", "value": "…"}.
_NAME_FIELDS = ("name", "key", "header", "field", "param", "variable", "k")
_VALUE_FIELDS = ("value", "val", "values", "content", "data", "v")
_OPTION = re.compile(r"-{0,2}[^\W\d_][\w.-]{0,60}")
_Words = tuple[str, ...]
_Pattern = re.Pattern[str] | None


def check_names(names: Json) -> None:
    if not isinstance(names, list) or not all(_is_name(name) for name in names):
        raise InvalidValue(
            "redact must be a list of field names, nested keys joined by dots; write "
            '["birthday", "customer.phone"]'
        )
    if len(names) > MOST_NAMES:
        raise InvalidValue(f"redact must have at most {MOST_NAMES} names, got {len(names):,}")


class Redactor:
    """Hides fields with the built-in names and these. Returns redacted copies."""

    def __init__(self, names: Iterable[str] = ()) -> None:
        self._names, self._texts = _compiled(tuple(names))

    def job(self, job: JobRow) -> JobRow:
        """Redact a job's payload, its key and the reason why it ended.

        If the job was read without its arguments, the values that they hide are unknown, so the
        texts of its progress and its key are hidden.
        """
        shown = [job.args, job.result, job.cursor, job.progress, job.meta, job.key, job.done_reason]
        known = _pattern(self._known(job), shown)
        args, result, cursor, progress, meta, key, reason = (
            self._value(value, (), known, 0) for value in shown
        )
        if job.args is None:
            progress, key = _texts_hidden(progress), _all(key)
        return replace(
            job,
            args=args,
            result=result,
            cursor=cursor,
            progress=progress,
            meta=meta,
            key=key,
            done_reason=reason,
        )

    def attempt(self, attempt: AttemptRow, *, of: JobRow | None = None) -> AttemptRow:
        """Redact an attempt. Values hidden in `of`, its job, are also hidden in its texts.

        If the job was read without its arguments, those values are unknown, so all texts are
        hidden.
        """
        known = () if of is None else self._known(of)

        def shown(value: Json) -> Json:
            return self.value(value, known) if of is None or of.args is not None else _all(value)

        return replace(
            attempt,
            error_message=shown(attempt.error_message),
            error_trace=shown(attempt.error_trace),
            error_signature=self.value(attempt.error_signature, known),
            log=shown(attempt.log),
            refused_result=shown(attempt.refused_result),
        )

    def group(self, group: FailedGroup, *, of: JobRow | None) -> FailedGroup:
        """Redact a group of dead letters as `attempt` does, using its sample job `of`."""
        known = () if of is None else self._known(of)
        seen = of is not None and of.args is not None
        message = group.error_message
        return replace(
            group,
            signature=self.value(group.signature, known),
            error_message=self.value(message, known) if seen else _all(message),
        )

    def error(self, error: Error, *, of: JobRow, whole: bool = False) -> Error:
        """Redact a job's error. If `whole`, hide all values from the job's arguments."""
        known = self._known(of)
        if whole:
            known = (*self._collected(of.args, hidden=True), *known)
        message = self.text(error.message, known)
        signature = error.signature or sanitize.signature(error.type, message)
        return Error(
            error.type,
            message,
            self.text(error.trace, known),
            self.text(signature, known)[: sanitize.MAX_SIGNATURE],
        )

    def items(self, items: Mapping[str, Json], *, of: JobRow | None = None) -> dict[str, Json]:
        """Redact a job's items.

        The keys are chosen by the job and aren't field names, but a key may also contain a secret.
        """
        known = _pattern(() if of is None else self._known(of), [items])
        return {
            self._key(key, known): self._value(data, (), known, 0) for key, data in items.items()
        }

    def schedule(self, schedule: ScheduleRow) -> ScheduleRow:
        """Redact the arguments and notes that a schedule passes to its jobs."""
        job = schedule.job
        known = self.values([job.args, job.meta])
        shown = {"args": self.value(job.args, known), "meta": self.value(job.meta, known)}
        return replace(schedule, job=replace(job, **shown))

    def audit(self, row: AuditRow) -> AuditRow:
        """Redact the values before and after an action."""
        known = self.values([row.before, row.after])
        before, after = self.value(row.before, known), self.value(row.after, known)
        return replace(row, before=before, after=after)

    def value(self, value: Json, known: Sequence[str] = ()) -> Json:
        """Redact a value and its texts; hide anything nested too deep."""
        return self._value(value, (), _pattern(known, [value]), 0)

    def text(self, text: str, known: Sequence[str] = ()) -> str:
        """Redact secrets, credentials in URLs, quoted rows, and values after a hidden name."""
        return self._texts.hidden(text, _pattern(known, [text]))

    def values(self, value: Json) -> tuple[str, ...]:
        """Return the values of hidden fields, longest first."""
        return self._collected(value, hidden=False)

    @staticmethod
    def has_marks(value: Json) -> bool:
        """Return whether a redacted value has marks in place of hidden or sealed values."""
        return first_mark(value) is not None

    def hides(self, *keys: str) -> bool:
        """Return whether the field at this path is hidden."""
        return self._names.has_path(*keys)

    def _collected(self, value: Json, *, hidden: bool) -> tuple[str, ...]:
        values: set[str] = set()
        self._collect(value, (), values, hidden=hidden, depth=0)
        return tuple(sorted(values, key=len, reverse=True)[:_MOST_VALUES])

    def _known(self, job: JobRow) -> tuple[str, ...]:
        return self.values([job.args, job.cursor, job.meta])

    def _value(self, value: Json, keys: _Words, known: _Pattern, depth: int) -> Json:
        if depth > MAX_DEPTH:
            return HIDDEN
        match value:
            case str():
                return self._texts.hidden(value, known)
            case Mapping():
                paired = self._pair(value)
                shown: dict[str, Json] = {}
                for key, item in value.items():
                    name = str(key)
                    if item is None:
                        inner = None
                    elif name == SEALED_KEY:
                        inner = SEALED
                    elif name in paired or self._names.has_path(*keys, name):
                        inner = HIDDEN
                    else:
                        inner = self._value(item, (*keys, name), known, depth + 1)
                    shown[self._key(name, known)] = inner
                return shown
            case list() | tuple():
                named = self._named_items(value)
                return [
                    HIDDEN if at in named else self._value(item, keys, known, depth + 1)
                    for at, item in enumerate(value)
                ]
            case _:
                return value

    def _key(self, name: str, known: _Pattern) -> str:
        """Return a field's name without secrets. Even a name may be a token or a URL."""
        if len(name) < _SHORTEST or (known is None and len(name) < 16):
            return name
        return self._texts.hidden(name, known) if len(name) >= 16 else _without(known, name)

    def _pair(self, value: Mapping[Json, Json]) -> Iterable[str]:
        """Return the fields whose value is hidden because another field names it."""
        if len(value) <= 8:
            for field in value:
                if isinstance(field, str) and field.lower() in _NAME_FIELDS:
                    name = value[field]
                    if isinstance(name, str) and self._names.has(name):
                        return [one for one in value if str(one).lower() in _VALUE_FIELDS]
        return ()

    def _named_items(self, value: Sequence[Json]) -> Iterable[int]:
        """Return the positions of list items to hide because the item before them names a secret.

        The list may be a pair, or the item before may be a command-line option.
        """
        if len(value) != 2 and not any(type(item) is str and item[:1] == "-" for item in value):
            return ()
        return [
            at + 1
            for at, item in enumerate(value[:-1])
            if type(item) is str
            and (len(value) == 2 or item[:1] == "-")
            and len(item) < 64
            and _OPTION.fullmatch(item)
            and self._names.has(item)
            and isinstance(value[at + 1], str | int | float | list | tuple)
        ]

    def _collect(
        self, value: Json, keys: _Words, values: set[str], *, hidden: bool, depth: int
    ) -> None:
        if depth > MAX_DEPTH or value is None or isinstance(value, bool):
            return
        match value:
            case str() | int() | float():
                if hidden and len(str(value)) >= _SHORTEST:
                    values.add(str(value))
            case Mapping():
                paired = self._pair(value)
                for key, item in value.items():
                    inner = (*keys, str(key))
                    inside = hidden or str(key) in paired or self._names.has_path(*inner)
                    self._collect(item, inner, values, hidden=inside, depth=depth + 1)
            case list() | tuple():
                named = self._named_items(value)
                for at, item in enumerate(value):
                    inside = hidden or at in named
                    if inside or type(item) is not str:
                        self._collect(item, keys, values, hidden=inside, depth=depth + 1)
            case _:
                if hidden and len(str(value)) >= _SHORTEST:
                    values.add(str(value))


def first_mark(value: Json) -> str | None:
    """Return a mark that stands for a hidden or sealed value, or None if the value has none."""
    match value:
        case str():
            return next((mark for mark in (HIDDEN, SEALED) if mark in value), None)
        case Mapping():
            parts = [*value, *value.values()]
        case list() | tuple():
            parts = [*value]
        case _:
            return None
    return next((mark for part in parts if (mark := first_mark(part)) is not None), None)


@lru_cache(maxsize=16)
def _compiled(names: tuple[str, ...]) -> tuple[SecretNames, SecretText]:
    """Return the matchers for these names, cached because every request uses the same ones."""
    of = SecretNames(names)
    return of, SecretText(of)


def _pattern(known: Sequence[str], values: Sequence[Json]) -> _Pattern:
    """Return a pattern that matches only those known values that occur in the texts."""
    if not known:
        return None
    texts: list[str] = []
    _gather(values, len(known[-1]), texts, 0)
    # A separator that no stored text contains, so that no value is found across two texts.
    text = "\0".join(texts)
    most = max(_MOST_LOOKED_AT // (len(text) or 1), 50)
    return pattern_of([one for one in known[:most] if one in text][:_MOST_FOUND])


def _all(value: Json) -> Json:
    return None if value is None else HIDDEN


def _texts_hidden(progress: Json) -> Json:
    """Return a job's progress without its texts. `at` is Tenure's own."""
    if not isinstance(progress, dict):
        return progress
    return {
        name: HIDDEN if isinstance(value, str) and name != "at" else value
        for name, value in progress.items()
    }


def _without(known: _Pattern, text: str) -> str:
    return text if known is None else known.sub(HIDDEN, text)


def _gather(value: Json, shortest: int, texts: list[str], depth: int) -> None:
    """Collect the texts that are long enough to contain one of the known values."""
    if depth > MAX_DEPTH + 1:
        return
    match value:
        case str():
            if len(value) >= shortest:
                texts.append(value)
        case Mapping():
            for key, item in value.items():
                if len(str(key)) >= shortest:
                    texts.append(str(key))
                _gather(item, shortest, texts, depth + 1)
        case list() | tuple():
            for item in value:
                _gather(item, shortest, texts, depth + 1)
        case _:
            pass


def _is_name(name: Json) -> bool:
    return (
        isinstance(name, str) and len(name) <= 200 and all(map(secret_names.words, name.split(".")))
    )
