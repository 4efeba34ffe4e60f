"""Settings that can be changed at run time: their names and valid values."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import timedelta

from tenure._model.ids import Json
from tenure._model.job import KIND_NAMES
from tenure._rules import redaction
from tenure._rules.leasing import check_ttl
from tenure.config import DEFAULTS, LONGEST_WAIT, Backoff
from tenure.errors import InvalidValue


def _seconds(name: str, value: Json) -> timedelta:
    if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
        raise InvalidValue(f"{name} must be a number of seconds, got {_shown(value)}")
    if not value <= LONGEST_WAIT.total_seconds():
        raise InvalidValue(f"{name} must be at most {LONGEST_WAIT.days:,} days, got {value!r} s")
    return timedelta(seconds=value)


def _shown(value: Json) -> str:
    """Describe a rejected value. Text may be secret, so only its type is shown."""
    return f"a {type(value).__name__}" if isinstance(value, str | list | dict) else repr(value)


def _lease(name: str, value: Json) -> None:
    check_ttl(_seconds(name, value))


def _duration(name: str, value: Json) -> None:
    _seconds(name, value)


def _count(name: str, value: Json) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 32_767:
        raise InvalidValue(f"{name} must be an int from 1 to 32,767, got {_shown(value)}")


def _share(name: str, value: Json) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise InvalidValue(f"{name} must be a number from 0 to 1, got {_shown(value)}")


def _flag(name: str, value: Json) -> None:
    if not isinstance(value, bool):
        raise InvalidValue(f"{name} must be true or false, got {_shown(value)}")


def _names(name: str, value: Json) -> None:  # noqa: ARG001 - the same signature for all
    redaction.check_names(value)


def _kinds(name: str, value: Json) -> None:
    if not isinstance(value, list) or not all(each in KIND_NAMES for each in value):
        raise InvalidValue(
            f"{name} must be a list of {', '.join(KIND_NAMES)}, got {_shown(value)}; write it as "
            '["http"]'
        )


# Each setting and the check for its value; docs/reference/settings.md explains them.
SETTINGS: Mapping[str, Callable[[str, Json], None]] = {
    "lease": _lease,
    "max_attempts": _count,
    "max_losses": _count,
    "backoff_base": _duration,
    "backoff_cap": _duration,
    "backoff_jitter": _share,
    "backoff_enforced": _flag,
    "keep_archive_days": _count,
    "keep_attempts_days": _count,
    "keep_failed_days": _count,
    "keep_ticks_days": _count,
    "redact": _names,
    "keep_rollups_days": _count,
    "enabled_kinds": _kinds,
}

BUILT_IN: Mapping[str, Json] = {
    "lease": DEFAULTS.lease.total_seconds(),
    "max_attempts": DEFAULTS.max_attempts,
    "max_losses": DEFAULTS.max_losses,
    "backoff_base": DEFAULTS.backoff.base.total_seconds(),
    "backoff_cap": DEFAULTS.backoff.cap.total_seconds(),
    "backoff_jitter": DEFAULTS.backoff.jitter,
    "backoff_enforced": False,
    "keep_archive_days": DEFAULTS.keep_archive.days,
    "keep_attempts_days": DEFAULTS.keep_attempts.days,
    "keep_failed_days": DEFAULTS.keep_failed.days,
    "keep_ticks_days": DEFAULTS.keep_ticks.days,
    "redact": [],
    "keep_rollups_days": DEFAULTS.keep_rollups.days,
    "enabled_kinds": [],
}


def check_name(name: str) -> None:
    if name not in SETTINGS:
        raise InvalidValue(f"setting {name!r} does not exist; settings are {', '.join(SETTINGS)}")


def check_setting(name: str, value: Json) -> None:
    check_name(name)
    SETTINGS[name](name, value)


def backoff(changed: Mapping[str, Json], built_in: Backoff) -> Backoff:
    """Return the backoff for tasks that don't set one."""
    base, cap = changed.get("backoff_base"), changed.get("backoff_cap")
    jitter = changed.get("backoff_jitter")
    return Backoff(
        base=built_in.base if base is None else timedelta(seconds=base),
        cap=built_in.cap if cap is None else timedelta(seconds=cap),
        jitter=built_in.jitter if jitter is None else jitter,
    )


def enforced_backoff(changed: Mapping[str, Json]) -> Backoff | None:
    """Return the backoff that the store enforces, without jitter, or None if it enforces none."""
    if not changed.get("backoff_enforced"):
        return None
    return replace(backoff(changed, DEFAULTS.backoff), jitter=0.0)
