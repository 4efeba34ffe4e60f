"""Check the lifetimes and the use of access tokens."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from tenure._model.access import TokenRow
from tenure._model.diagnostics import FindingCode
from tenure.admin.doctor.findings import Findings, fine, run, warning

UNUSED_FOR = timedelta(days=30)


def lifetimes(active: Sequence[TokenRow], now: datetime, *, most: int) -> Findings:
    """Report active tokens that never expire, and those that no program uses."""
    endless = [row for row in active if row.expires_at is None]
    unused = [row for row in active if (row.last_used_at or row.created_at) < now - UNUSED_FOR]
    if endless:
        yield warning(
            "tokens",
            FindingCode.TOKEN_ENDLESS,
            f"access tokens never expire: {_named(endless, most)}",
            "a copy in a log or a backup works until you revoke the token. Create one that "
            "expires, give it to the program, and revoke this one",
            run(f"tenure token revoke {endless[0].id}"),
        )
    if unused:
        yield warning(
            "tokens",
            FindingCode.TOKEN_UNUSED,
            f"access tokens were not used for {UNUSED_FOR.days} days: {_named(unused, most)}",
            "each one is a way in that you would not miss",
            run(f"tenure token revoke {unused[0].id}"),
        )
    if not endless and not unused:
        yield fine("tokens", "every active access token expires and is in use")


def _named(rows: Sequence[TokenRow], most: int) -> str:
    names = ", ".join(f"{row.id} ({row.name})" for row in rows[:most])
    return names if len(rows) <= most else f"{names} and {len(rows) - most} more"
