"""The settings that can be changed at run time: their names, and what they may be."""

from collections.abc import Callable, Mapping
from datetime import timedelta

from tenure._model.ids import Json
from tenure._rules import redaction
from tenure._rules.leasing import check_ttl
from tenure.config import DEFAULTS, LONGEST_WAIT, Backoff
from tenure.errors import InvalidValue


def _seconds(name: str, value: Json) -> timedelta:
    if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
        raise InvalidValue(f"{name} is a number of seconds, not {_shown(value)}")
    if not value <= LONGEST_WAIT.total_seconds():
        raise InvalidValue(f"{name} is {value!r} s; {LONGEST_WAIT.days:,} days is the most")
    return timedelta(seconds=value)


def _shown(value: Json) -> str:
    """What is said of a value that was refused: a text can be a secret, a number cannot."""
    return f"a {type(value).__name__}" if isinstance(value, str | list | dict) else repr(value)


def _lease(name: str, value: Json) -> None:
    check_ttl(_seconds(name, value))


def _duration(name: str, value: Json) -> None:
    _seconds(name, value)


def _count(name: str, value: Json) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 32_767:
        raise InvalidValue(f"{name} is a whole number from 1 to 32,767, not {_shown(value)}")


def _share(name: str, value: Json) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise InvalidValue(f"{name} is a share from 0 to 1, not {_shown(value)}")


def _names(name: str, value: Json) -> None:  # noqa: ARG001 - one form for all
    redaction.check_names(value)


# Name, and what checks its value. docs/reference/settings.md says what each one does.
SETTINGS: Mapping[str, Callable[[str, Json], None]] = {
    "lease": _lease,
    "max_attempts": _count,
    "max_losses": _count,
    "backoff_base": _duration,
    "backoff_cap": _duration,
    "backoff_jitter": _share,
    "keep_archive_days": _count,
    "keep_attempts_days": _count,
    "keep_failed_days": _count,
    "keep_ticks_days": _count,
    "redact": _names,
    "keep_rollups_days": _count,
}

BUILT_IN: Mapping[str, Json] = {
    "lease": DEFAULTS.lease.total_seconds(),
    "max_attempts": DEFAULTS.max_attempts,
    "max_losses": DEFAULTS.max_losses,
    "backoff_base": DEFAULTS.backoff.base.total_seconds(),
    "backoff_cap": DEFAULTS.backoff.cap.total_seconds(),
    "backoff_jitter": DEFAULTS.backoff.jitter,
    "keep_archive_days": DEFAULTS.keep_archive.days,
    "keep_attempts_days": DEFAULTS.keep_attempts.days,
    "keep_failed_days": DEFAULTS.keep_failed.days,
    "keep_ticks_days": DEFAULTS.keep_ticks.days,
    "redact": [],
    "keep_rollups_days": DEFAULTS.keep_rollups.days,
}


def check_name(name: str) -> None:
    """Refuse a setting that does not exist."""
    if name not in SETTINGS:
        raise InvalidValue(f"there is no setting {name!r}; there are: {', '.join(SETTINGS)}")


def check_setting(name: str, value: Json) -> None:
    """Refuse a setting that does not exist, or a value it cannot have."""
    check_name(name)
    SETTINGS[name](name, value)


def backoff(changed: Mapping[str, Json], built_in: Backoff) -> Backoff:
    """The backoff that holds where a task has none of its own."""
    base, cap = changed.get("backoff_base"), changed.get("backoff_cap")
    jitter = changed.get("backoff_jitter")
    return Backoff(
        base=built_in.base if base is None else timedelta(seconds=base),
        cap=built_in.cap if cap is None else timedelta(seconds=cap),
        jitter=built_in.jitter if jitter is None else jitter,
    )
