"""Whether a request is the same as the one before: its digest."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import fields

from tenure._model.ids import Json
from tenure._model.job import NewJob
from tenure._rules.values import dump

_UNSAID = NewJob("")


def digest(jobs: Sequence[NewJob]) -> str:
    """The SHA-256 of what is asked for, in order. What is not said does not enter it, so that a
    release that knows more options has the same digest for the same request."""
    asked = [_said(job) for job in jobs]
    text = json.dumps(asked, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _said(job: NewJob) -> dict[str, Json]:
    return {
        field.name: dump(getattr(job, field.name))
        for field in fields(job)
        if getattr(job, field.name) != getattr(_UNSAID, field.name)
    }
