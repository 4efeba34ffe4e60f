"""Notices: report dead letters and other events to a receiver. Workers with HTTP work send them."""

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from tenure import _settings
from tenure._model.ids import Json
from tenure._model.notice import (
    NOTICE_QUEUE,
    OTHER_CAUSES,
    Notice,
    NoticeEvent,
    NoticeFormat,
    NoticeRule,
)
from tenure._model.outcome import GiveUp
from tenure._rules import notices as rules
from tenure._rules.redaction import Redactor
from tenure._rules.sealing import SEALED_PREFIX
from tenure._store.port import Store
from tenure._store.steps import Op
from tenure.config import Backoff, TaskOptions
from tenure.errors import ConfigError, Error, InvalidValue
from tenure.job import AsyncJob
from tenure.kinds.settings import secret as secret_values

# Ten attempts, over about four hours.
OPTIONS: TaskOptions = {"queue": NOTICE_QUEUE, "timeout": 60, "backoff": Backoff(base=10)}


@dataclass(frozen=True, slots=True)
class _Request:
    """A request that delivers a notice. `signed_by` is the secret that signs it, if any."""

    url: str
    body: Mapping[str, Json]
    signed_by: str | None = None


async def handler(
    job: AsyncJob,
    *,
    rule: str,
    event: str,
    group: str,
    count: int,
    first_at: str,
    last_at: str,
    queue: str = "",
    task: str = "",
    subject: str | None = None,
    waited: float | None = None,
    job_id: int | None = None,
    last_job_id: int | None = None,
) -> dict[str, Json]:
    """Send one notice to the receiver of its rule.

    Args:
        job: The job.
        rule: The rule's name. Its URL and format are read now, so that a corrected rule works.
        event: The event, such as `failed`.
        group: The group of events with one cause.
        count: How many events the notice covers.
        first_at: When the first of them happened.
        last_at: When the last of them happened.
        queue: The queue.
        task: The task.
        subject: A schedule's or a worker's name.
        waited: How long the oldest job of a queue has waited, in seconds.
        job_id: The first dead letter.
        last_job_id: The last dead letter.

    Returns:
        The status of the response, or why nothing was sent.

    Raises:
        GiveUp: The rule's secret isn't valid for its format.
        ConfigError: This worker doesn't have the rule's secret.
    """
    from tenure.kinds import http  # noqa: PLC0415 - it needs the extra

    letters = [each for each in (job_id, last_job_id) if each is not None]
    # A built-in kind may use the engine of its job.
    found, error = await job._engine.arun(_facts(job._store, rule, letters))  # noqa: SLF001
    if found is None:
        return {"sent": False, "reason": f"the notice rule {rule} no longer exists"}
    is_other = group == OTHER_CAUSES
    notice = Notice(
        rule=rule,
        event=event,
        group=group,
        count=count,
        first_at=first_at,
        last_at=last_at,
        queue=queue,
        task="" if is_other else task,
        subject=subject,
        waited=waited,
        job_id=job_id,
        last_job_id=last_job_id,
        error=None if error is None or is_other else error.message,
        signature=None if error is None or is_other else error.signature,
        link=_link(event, job_id if count == 1 else None),
        is_other=is_other,
    )
    request = _request(found, notice, source=job._engine.schema)  # noqa: SLF001 - see above
    answer = await http.handler(
        job, url=request.url, json=dict(request.body), secret=request.signed_by
    )
    return {"sent": True, "status": answer["status"]}


def check(arguments: Mapping[str, Json]) -> None:  # noqa: ARG001 - the same for every kind
    """Refuse every enqueue: only rules make notices."""
    raise InvalidValue("notices are made by rules only; add one with tenure notify add")


def prepare() -> None:
    """Check nothing: the HTTP kind checks the configuration."""


def _facts(
    store: Store, rule: str, letters: list[int]
) -> Op[tuple[NoticeRule | None, Error | None]]:
    """Read the rule, and the redacted error of the first dead letter that still is one."""
    rows = yield from store.notices.list([rule])
    if not rows:
        return None, None
    error = (yield from store.notices.error(letters)) if letters else None
    if error is None:
        return rows[0], None
    message = error.message or ""
    if message.startswith(SEALED_PREFIX):
        # The codec's owner decided who may read it. A receiver isn't among them.
        message = ""
    changed = yield from store.settings.changed()
    whole = yield from store.jobs.get(error.job_id)
    shown = Error(error.type or "", message, "", error.signature or "")
    if whole is not None:
        shown = Redactor(changed.get("redact", ())).error(shown, of=whole)
    return rows[0], shown


def _request(rule: NoticeRule, notice: Notice, *, source: str) -> _Request:
    match rule.format:
        case NoticeFormat.SLACK:
            [url, *_] = secret_values(rule.secret)
            if not url.startswith("https://") and not url.startswith("http://"):
                raise GiveUp(
                    f"secret {rule.secret!r} must be the URL of a Slack webhook, got something else"
                )
            return _Request(url, rules.slack(notice))
        case NoticeFormat.PAGERDUTY:
            url = rule.url or rules.PAGERDUTY_URL
            _check_receiver(rule.secret, url)
            [key, *_] = secret_values(rule.secret)
            return _Request(url, {"routing_key": key, **rules.pagerduty(notice, source=source)})
        case _:
            return _Request(rule.url or "", rules.standard(notice), signed_by=rule.secret)


def _check_receiver(secret: str, url: str) -> None:
    """Refuse to send a routing key to a host that isn't PagerDuty's or the worker's choice."""
    from tenure.kinds.http.configuration import read_configuration  # noqa: PLC0415 - see above

    parts = urlsplit(url)
    host = parts.hostname or ""
    port = parts.port or (443 if parts.scheme == "https" else 80)
    if parts.scheme == "https" and host in rules.PAGERDUTY_HOSTS and port == 443:
        return
    hosts = read_configuration().secrets.get(secret, ())
    if not any(each.has(parts.scheme, host, port) for each in hosts):
        raise ConfigError(
            f"secret {secret!r} must not be sent to {host}; a worker sends it only to PagerDuty "
            f'and to hosts of its configuration: {secret} = ["{host}"] in [kinds.http.secrets]'
        )


def _link(event: str, job_id: int | None) -> str | None:
    """Return the page of the dashboard that shows more, if this worker knows its address."""
    base: str | None = _settings.resolve("public_url")
    if base is None:
        return None
    match event:
        case NoticeEvent.FAILED:
            page = "/failed" if job_id is None else f"/jobs/{job_id}"
        case NoticeEvent.QUEUE_BEHIND:
            page = "/queues"
        case NoticeEvent.SCHEDULE_MISSED:
            page = "/schedules"
        case NoticeEvent.WORKER_LOST:
            page = "/workers"
        case _:
            page = "/notices"
    return base.rstrip("/") + page
